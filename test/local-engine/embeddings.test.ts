/** Embeddings, reranking, tokenization and infill with the real engine. */
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm, type Llm, LlmError, routesFor } from '@modelmount/core'
import type { Embeddings, InfillInput } from '@modelmount/core/engine'
import { toNodeHandler } from '@modelmount/core/http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listen } from '../support/listen.ts'
import { gapModel, gapTokens, rankingModel } from '../support/made-models.ts'
import { encoderModel, noiseModel } from '../support/models.ts'

/** The context size of the encoder, in tokens. */
const contextLength = 512

let folder: string
let llm: Llm

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'models-'))
  await copyFile(encoderModel, join(folder, 'encoder.gguf'))
  await copyFile(noiseModel, join(folder, 'noise.gguf'))
  await writeFile(join(folder, 'ranker.gguf'), rankingModel())
  const flags = { 'tokenizer.ggml.add_eos_token': true, 'tokenizer.ggml.add_sep_token': false }
  await writeFile(join(folder, 'ended-ranker.gguf'), rankingModel(0, flags))
  await writeFile(join(folder, 'gap.gguf'), gapModel())
  llm = await createLlm({
    models: folder,
    scopes: ['inference', 'models'],
    local: { reloadCooldown: 0 },
  })
})

afterAll(async () => {
  await llm.close()
  await rm(folder, { recursive: true })
})

type Inputs = readonly (string | readonly number[])[]
const model = 'encoder'
const embed = (inputs: Inputs, more: object = {}): Promise<Embeddings> =>
  llm.embed({ model, inputs, ...more })
const vectorOf = async (input: Inputs[number], more: object = {}) =>
  (await embed([input], more)).embeddings[0] ?? []
const words = (count: number): string => 'fox '.repeat(count).trim()
const lengthOf = (vector: readonly number[] = []): number => Math.hypot(...vector)
const kill = (signal: NodeJS.Signals): boolean =>
  process.kill(llm.loaded().find(({ name }) => name === 'encoder:latest')?.processId ?? Number.NaN, signal)
const cosine = (a: readonly number[], b: readonly number[]): number =>
  a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0)

/** Equal except for rounding, which depends on the other texts in a decode. */
const expectSame = (a: readonly number[] = [], b: readonly number[] = []): void => {
  expect(a).toHaveLength(b.length)
  expect(cosine(a, b)).toBeCloseTo(1, 5)
}

describe('embeddings', () => {
  test('are one vector of length 1 for each text, in order, and equal for equal texts', async () => {
    const { embeddings, inputTokens, loadMs, totalMs } = await embed(['Hello', 'A fox ran.', 'Hello'])

    expect(embeddings.map(({ length }) => length)).toEqual([64, 64, 64])
    for (const vector of embeddings) expect(lengthOf(vector)).toBeCloseTo(1, 6)
    expectSame(embeddings[2], embeddings[0])
    expect(cosine(embeddings[1] ?? [], embeddings[0] ?? [])).toBeLessThan(0.999)
    expect(inputTokens).toBe(3 + 6 + 3)
    expect(totalMs).toBeGreaterThanOrEqual(loadMs)
  })

  test('are the same for a text and for its token ids, with or without special tokens', async () => {
    const text = 'A fox ran.'
    const bare = await llm.tokenize({ model, text })
    const whole = await llm.tokenize({ model, text, addSpecial: true })

    const { embeddings, inputTokens } = await embed([text, bare, whole])

    expect(whole).toEqual([101, ...bare, 102])
    expectSame(embeddings[1], embeddings[0])
    expectSame(embeddings[2], embeddings[0])
    expect(inputTokens).toBe(3 * whole.length)
  })

  test('with fewer dimensions are the beginning of the whole vector, scaled to length 1', async () => {
    const whole = await vectorOf('Hello')
    const short = await vectorOf('Hello', { dimensions: 8 })
    const all = await vectorOf('Hello', { dimensions: 1_000 })

    const first = whole.slice(0, 8)
    expect(short).toHaveLength(8)
    expect(lengthOf(short)).toBeCloseTo(1, 6)
    expect(cosine(short, first) / lengthOf(first)).toBeCloseTo(1, 6)
    expect(all).toEqual(whole)
  })

  test('accept a text as long as the context, and reject a longer one with its index', async () => {
    const { inputTokens } = await embed([words(contextLength - 2)])

    expect(inputTokens).toBe(contextLength)
    await expect(embed(['Hello', words(contextLength - 1)])).rejects.toMatchObject({
      code: 'context_length',
      details: { param: 'inputs[1]', inputTokens: contextLength + 1, contextSize: contextLength },
    })
    await expect(embed([words(100_000)])).rejects.toMatchObject({ code: 'context_length' })
  })

  test('with overflow: truncate, drop the end of a text that is too long, but keep its last token', async () => {
    const { embeddings, inputTokens } = await embed(
      [words(contextLength - 2), words(contextLength + 50), words(300_000), Array(5_000).fill(4_419)],
      { overflow: 'truncate' },
    )

    expect(inputTokens).toBe(4 * contextLength)
    for (const vector of embeddings) expect(cosine(vector, embeddings[0] ?? [])).toBeCloseTo(1, 6)
  })

  test('respect a smaller contextSize of the request', async () => {
    const load = { contextSize: 16 }
    const { inputTokens } = await embed([words(14)], { load })

    expect(inputTokens).toBe(16)
    await expect(embed([words(15)], { load })).rejects.toMatchObject({ code: 'context_length' })
  })

  describe('in the Ollama API', () => {
    const ask = async (num_ctx: number, fields: object, path = 'embed') => {
      const { url, close } = await listen(toNodeHandler(routesFor(), llm))
      const body = JSON.stringify({ model, ...fields, options: { num_ctx } })
      const response = await fetch(`${url}/api/${path}`, { method: 'POST', body })
      const answer = (await response.json()) as Record<string, unknown>
      await close()
      return { status: response.status, ...answer }
    }

    test.each([3, 8, 15, 16])('use a context of 16 tokens for a num_ctx of %i', async (size) => {
      const cut = await ask(size, { input: [words(20), 'Hello'] })
      const whole = await ask(size, { input: words(20), truncate: false })
      const legacy = await ask(size, { prompt: words(5) }, 'embeddings')

      expect(cut).toMatchObject({ status: 200, prompt_eval_count: 16 + 3 })
      expect(whole).toMatchObject({
        status: 400,
        error: expect.stringContaining('the input length exceeds the context length'),
      })
      expect(legacy).toMatchObject({ status: 200, embedding: await vectorOf(words(5)) })
    })

    test.each([0, 1, 2])('are rejected for a num_ctx of %i, which has no room for a token', async (size) => {
      const error = 'input exceeds maximum context length and cannot be truncated further'

      expect(await ask(size, { input: 'Hello' })).toEqual({ status: 400, error })
      expect(await ask(size, { prompt: 'Hello' }, 'embeddings')).toEqual({ status: 400, error })
    })
  })

  test('for a caller who may not choose the context, a text is cut only if no other context could hold it', async () => {
    const small = await createLlm({ models: folder, local: { contextSize: 16 } })
    const { url, close } = await listen(toNodeHandler(routesFor(), small))
    const body = JSON.stringify({ model, input: words(20), options: { num_ctx: 64 } })

    const refused = await fetch(`${url}/api/embed`, { method: 'POST', body })
    const { inputTokens } = await llm.embed(
      { model, inputs: [words(contextLength + 50)], overflow: 'truncate', load: { contextSize: 8_192 } },
      { caller: { id: 'ann', scopes: ['inference'] } },
    )

    expect(inputTokens).toBe(contextLength)
    expect([refused.status, await refused.json()]).toEqual([
      400,
      {
        error: expect.stringMatching(
          /^the input length exceeds .* A `num_ctx` of 64 requires the scope 'models'/,
        ),
      },
    ])
    await close()
    await small.close()
  })

  test.each<[what: string, inputs: Inputs, more: object, param: string]>([
    ['an empty text', ['Hello', ''], {}, 'inputs[1]'],
    ['an empty list of tokens', [[]], {}, 'inputs[0]'],
    ['an unknown token', [[5], [30_522]], {}, 'inputs[1]'],
    ['a negative token', [[-1]], {}, 'inputs[0]'],
    ['a number as input', [5 as unknown as string], {}, 'inputs[0]'],
    ['a list of 10,001 texts', Array(10_001).fill('a'), {}, 'inputs'],
    ['a vector of 0 dimensions', ['Hello'], { dimensions: 0 }, 'dimensions'],
    ['an unknown value of overflow', ['Hello'], { overflow: 'shift' }, 'overflow'],
    ['a generative model', ['Hello'], { model: 'noise' }, 'model'],
    ['a reranking model', ['Hello'], { model: 'ranker' }, 'model'],
  ])('%s is rejected with the field name, and another call works', async (_what, inputs, more, param) => {
    const other = embed(['Hello'])

    await expect(embed(inputs, more)).rejects.toMatchObject({
      code: 'invalid_request',
      details: { param },
    })
    expect((await other).embeddings).toHaveLength(1)
  })

  test('of an empty list are an empty list', async () => {
    expect(await embed([])).toMatchObject({ embeddings: [], inputTokens: 0 })
  })

  test('a chat with an encoder is rejected', async () => {
    await expect(llm.chat('Hello', { model })).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('encoder'),
      details: { param: 'model' },
    })
  })

  test('of a call that is aborted count as far as they were evaluated', async () => {
    const inputs = Array<string>(4_000).fill('A fox ran.')
    const caller = { id: 'leaver', limits: { tokensPerDay: 100_000 } }
    const leaving = new AbortController()
    const many = llm.embed({ model, inputs }, { caller, signal: leaving.signal })
    // The two tenants take turns, so some of the texts are evaluated meanwhile.
    for (let call = 0; call < 5; call++) await embed(['Hello'])

    leaving.abort()
    await expect(many).rejects.toMatchObject({ name: 'AbortError' })

    const [{ remaining = 0 } = {}] = await llm.limits.of(caller)
    expect(remaining).toBeLessThan(100_000 - 6)
    expect(remaining).toBeGreaterThan(100_000 - 6 * inputs.length)
  })

  test('of 4,000 texts are in order, and a later call does not wait for them', async () => {
    const texts = Array.from({ length: 4_000 }, (_, index) => `${index} foxes ran.`)
    let isRead = false
    const many = embed(texts).finally(() => {
      isRead = true
    })
    const few = await embed(['Hello'])

    expect(isRead).toBe(false)
    const { embeddings } = await many
    expect(embeddings).toHaveLength(texts.length)
    expectSame(embeddings[0], await vectorOf(texts[0] ?? ''))
    expectSame(embeddings[3_999], await vectorOf(texts[3_999] ?? ''))
    expectSame(few.embeddings[0], await vectorOf('Hello'))
  }, 60_000)

  test('of texts of all lengths are those of each text alone', async () => {
    const texts = Array.from({ length: 150 }, (_, index) => `${index} ${words((index * 13) % 50)}`)
    const longest = words(contextLength - 2)

    const { embeddings } = await embed([...texts.slice(0, 75), longest, ...texts.slice(75)])

    expectSame(embeddings[75], await vectorOf(longest))
    for (const index of [0, 1, 40, 74]) expectSame(embeddings[index], await vectorOf(texts[index] ?? ''))
    for (const index of [75, 76, 149]) expectSame(embeddings[index + 1], await vectorOf(texts[index] ?? ''))
  })

  test('with one text that is too long among many are rejected with its index', async () => {
    const inputs = Array.from({ length: 200 }, (_, index) => (index === 130 ? words(600) : `${index} foxes`))

    await expect(embed(inputs)).rejects.toMatchObject({
      code: 'context_length',
      details: { param: 'inputs[130]' },
    })
    expect(await vectorOf('Hello')).toHaveLength(64)
  })

  test('an aborted call fails at once, and its remaining texts are not evaluated', async () => {
    const leaving = new AbortController()
    const aborted = llm.embed({ model, inputs: Array(10_000).fill(words(200)) }, { signal: leaving.signal })
    aborted.catch(() => {})
    await embed(['Hello'])
    const startedAt = performance.now()

    leaving.abort()

    await expect(aborted).rejects.toMatchObject({ name: 'AbortError' })
    await embed(['Hello'])
    expect(performance.now() - startedAt).toBeLessThan(5_000)
  })

  test.each(['SIGKILL', 'SIGSEGV'] as const)(
    'a model process that ends by %s fails its running calls, and the next call gets another process',
    async (signal) => {
      const inside = embed(['Hello', ...Array(9_999).fill(words(200))])
      inside.catch(() => {})
      // The next process would retry a call without evaluated texts. After these two calls, the first text of
      // `inside` has been evaluated.
      await embed(['Hello'])
      await embed(['Hello'])

      kill(signal)

      await expect(inside).rejects.toMatchObject({
        code: 'upstream',
        message: expect.stringContaining(signal),
      })
      expect(await vectorOf('Hello')).toHaveLength(64)
    },
  )

  test('are the same from two contexts as from one', async () => {
    const texts = Array.from({ length: 40 }, (_, index) => words(index + 1))
    const one = await createLlm({ models: folder, local: { threads: 1 } })
    const two = await createLlm({ models: folder, local: { threads: 2 } })
    try {
      const [alone, sideBySide] = await Promise.all(
        [one, two].map((llm) => llm.embed({ model, inputs: texts })),
      )

      expect(sideBySide?.embeddings).toEqual(alone?.embeddings)
    } finally {
      await Promise.all([one.close(), two.close()])
    }
  })
})

describe('reranking', () => {
  const rerank = (query: string, documents: readonly string[], more: object = {}) =>
    llm.rerank({ model: 'ranker', query, documents, ...more })

  test('gives each document a score from 0 to 1, independent of the other documents', async () => {
    const { scores, inputTokens } = await rerank('Who ran?', ['A fox ran.', 'It rained.', 'A fox ran.'])
    const alone = await rerank('Who ran?', ['It rained.'])

    expect(scores).toHaveLength(3)
    for (const score of scores) expect(score > 0 && score < 1).toBe(true)
    expect(scores[2]).toBeCloseTo(scores[0] ?? 0, 4)
    expect(scores[1]).not.toBeCloseTo(scores[0] ?? 0, 4)
    expect(scores[1]).toBeCloseTo(alone.scores[0] ?? 0, 4)
    expect(inputTokens).toBeGreaterThan(3 * 6)
  })

  test('a query and a document have the special tokens between and after them that the model file asks for', async () => {
    const [query, documents] = ['Who ran?', ['A fox ran.']]
    const texts = await Promise.all([query, ...documents].map((text) => llm.tokenize({ model, text })))
    const length = texts.flat().length

    // The file without flags has a separator, as for llama.cpp's server.
    expect(await rerank(query, documents)).toMatchObject({ inputTokens: 1 + length + 1 })
    const ended = await rerank(query, documents, { model: 'ended-ranker' })
    expect(ended.inputTokens).toBe(1 + length + 2)
  })

  test('rejects a document that is too long with its index, or truncates it', async () => {
    const documents = ['A fox ran.', words(1_000)]

    await expect(rerank('Who ran?', documents)).rejects.toMatchObject({
      code: 'context_length',
      details: { param: 'documents[1]', contextSize: contextLength },
    })
    const { scores, inputTokens } = await rerank('Who ran?', documents, { overflow: 'truncate' })

    expect(scores).toHaveLength(2)
    expect(inputTokens).toBeGreaterThan(contextLength)
    expect(inputTokens).toBeLessThan(contextLength + 20)
  })

  test('rejects a query that leaves no room for documents, even with overflow: truncate', async () => {
    await expect(rerank(words(600), ['A fox ran.'], { overflow: 'truncate' })).rejects.toMatchObject({
      code: 'context_length',
      details: { param: 'query' },
    })
  })

  test.each<[what: string, query: string, documents: readonly string[], more: object, param: string]>([
    ['an empty query', '', ['A fox ran.'], {}, 'query'],
    ['an empty document', 'Who ran?', ['A fox ran.', ''], {}, 'documents[1]'],
    ['an embedding model', 'Who ran?', ['A fox ran.'], { model }, 'model'],
    ['a generative model', 'Who ran?', ['A fox ran.'], { model: 'noise' }, 'model'],
  ])('%s is rejected with the name of the field', async (_what, query, documents, more, param) => {
    await expect(rerank(query, documents, more)).rejects.toMatchObject({
      code: 'invalid_request',
      details: { param },
    })
  })
})

describe('tokenization', () => {
  const story = 'Größe, 気温 and 🦊 foxes: "it\'s 42"\n\tdone. '

  test.each(['noise', 'tiny'])('is reversed by detokenization with the model %s', async (model) => {
    for (const text of [story, story.repeat(3_000)]) {
      const tokens = await llm.tokenize({ model, text })

      expect((await llm.detokenize({ model, tokens })).trim()).toBe(text.trim())
    }
  })

  test('adds special tokens with addSpecial, and treats their names as text with parseSpecial: false', async () => {
    const text = 'Hi </s>'
    const tokens = await llm.tokenize({ model: 'noise', text })
    const whole = await llm.tokenize({ model: 'noise', text, addSpecial: true })
    const plain = await llm.tokenize({ model: 'noise', text, parseSpecial: false })

    expect(tokens.at(-1)).toBe(2)
    expect(whole).toEqual([1, ...tokens])
    expect(plain).not.toContain(2)
    expect(await llm.tokenize({ model: 'noise', text: '' })).toEqual([])
    expect(await llm.detokenize({ model: 'noise', tokens: [] })).toBe('')
  })

  test('rejects unknown tokens in detokenize()', async () => {
    for (const tokens of [[5, 32_000], [-1], [0.5]])
      await expect(llm.detokenize({ model: 'noise', tokens })).rejects.toMatchObject({
        code: 'invalid_request',
        details: { param: 'tokens' },
      })
  })

  test('works while an answer is generated', async () => {
    const pieces = llm
      .chat('Hello', { model: 'noise', maxTokens: 1_000, stream: true })
      [Symbol.asyncIterator]()
    await pieces.next()

    const tokens = await llm.tokenize({ model: 'noise', text: story.repeat(2_000) })

    expect(tokens.length).toBeGreaterThan(20_000)
    expect((await pieces.next()).done).toBe(false)
    await pieces.return?.()
  })
})

describe('infill', () => {
  const input: InfillInput = { kind: 'infill', prefix: 'def add(a, b): <|im_end|>', suffix: '\n    return c' }
  const call = { signal: new AbortController().signal }

  test('puts prefix and suffix between the infill tokens of the model, and treats special tokens in them as text', async () => {
    const { prefix, suffix, middle } = gapTokens
    const ids = async (text: string) => await llm.tokenize({ model: 'gap', text, parseSpecial: false })

    const count = await llm.countTokens({ model: 'gap', input }, call)
    const events = await llm.generate({ model: 'gap', input, maxTokens: 4, returnTokens: true }, call)
    let tokens: readonly number[] = []
    for await (const event of events) if (event.type === 'end') tokens = event.tokens ?? []

    const prompt = [prefix, ...(await ids(input.prefix)), suffix, ...(await ids(input.suffix)), middle]
    expect(tokens.slice(0, prompt.length)).toEqual(prompt)
    expect(count).toBe(prompt.length)
  })

  test('is rejected by a model without infill tokens', async () => {
    const refused = await llm.generate({ model: 'tiny', input }, call).catch((error: unknown) => error)

    expect(LlmError.from(refused)).toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('"tiny:latest"'),
      details: { param: 'suffix' },
    })
  })
})
