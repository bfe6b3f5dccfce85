/** B-5: a text crashes native code (llama.cpp#25308, std::regex), and with it end the answers of all callers. */
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm, type Llm, routesFor } from '@modelmount/core'
import type { GenerateEvent } from '@modelmount/core/engine'
import { toNodeHandler } from '@modelmount/core/http'
import { modelPath } from '@modelmount/tiny-model'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { forgedEmbedder, forgedPreTokenizer, forgedRanker } from '../../support/forgeries.ts'
import { type Listening, listen } from '../../support/listen.ts'
import { childrenOf, hasProc } from '../../support/processes.ts'

/** `regex` and others split words with std::regex. `spaces` aborts on two spaces: its vocabulary has spaces. */
const models = {
  regex: () => forgedPreTokenizer('gpt-4o'),
  embedder: () => forgedEmbedder('gpt-4o'),
  ranker: () => forgedRanker('gpt-4o'),
  spaces: () => forgedPreTokenizer('whitespace'),
}
const longWord = 'a'.repeat(30_000)

let folder: string
let llm: Llm
let server: Listening

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'words-'))
  for (const [name, bytes] of Object.entries(models)) await writeFile(join(folder, `${name}.gguf`), bytes())
  await copyFile(modelPath, join(folder, 'reference.gguf'))
  llm = await createLlm({
    models: folder,
    local: { contextSize: 2_048, maxContextSize: 65_536, reloadCooldown: 0 },
  })
  server = await listen(toNodeHandler(routesFor(), llm))
})

afterAll(async () => {
  await server.close()
  await llm.close()
  await rm(folder, { recursive: true })
})

const processIdOf = (model: string): number =>
  llm.loaded().find(({ name }) => name === `${model}:latest`)?.processId ?? Number.NaN

async function post(path: string, body: object): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${server.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: await response.json() }
}

/** Fails in the test that awaits it, not before. */
function settled(work: Promise<void>): Promise<void> {
  work.catch(() => {})
  return work
}

/** Does the work while an answer of 600 tokens is streamed. Returns the last event of the answer. */
async function streamDuring(model: string, work: () => Promise<void>): Promise<GenerateEvent | undefined> {
  const request = {
    model,
    input: { kind: 'text' as const, prompt: ['Hello'], template: false as const },
    maxTokens: 600,
    sampling: { ignoreEos: true },
  }
  let working: Promise<void> | undefined
  let last: GenerateEvent | undefined
  for await (const event of await llm.generate(request, {
    signal: new AbortController().signal,
    stream: true,
  })) {
    if (event.type === 'text') working ??= settled(work())
    last = event
  }
  await working
  return last
}

test('a word of 30,000 letters is counted, tokenized and answered, and other answers go on', async () => {
  const messages = [{ role: 'user', content: longWord }]
  const reference = await llm.tokenize({ model: 'reference', text: longWord })
  await llm.load('regex')
  const processId = processIdOf('regex')

  const last = await streamDuring('regex', async () => {
    const counted = await post('/v1/messages/count_tokens', { model: 'regex', messages })
    const tooLong = await post('/v1/messages', { model: 'regex', max_tokens: 1, messages })
    const tokens = await llm.tokenize({ model: 'regex', text: longWord })

    expect(counted).toMatchObject({ status: 200, body: { input_tokens: expect.any(Number) } })
    expect((counted.body as { input_tokens: number }).input_tokens).toBeGreaterThan(reference.length)
    expect(tooLong).toMatchObject({ status: 400, body: { error: { type: 'invalid_request_error' } } })
    expect(tokens).toEqual(reference)
  })

  expect(last).toMatchObject({ type: 'end', usage: { outputTokens: 600 } })
  expect(processIdOf('regex')).toBe(processId)
})

test('a word of 30,000 letters is embedded and ranked as far as it fits the context', async () => {
  const overflow = 'truncate'
  const embed = () => llm.embed({ model: 'embedder', inputs: [longWord, 'Hello'], overflow })
  const rerank = (query: string) =>
    llm.rerank({ model: 'ranker', query, documents: [longWord, 'a'], overflow })
  await llm.load('embedder')
  await llm.load('ranker')
  const processIds = [processIdOf('embedder'), processIdOf('ranker')]

  expect((await embed()).embeddings).toHaveLength(2)
  expect((await rerank('a')).scores).toHaveLength(2)
  await expect(rerank(longWord)).rejects.toMatchObject({ code: 'context_length' })
  expect([processIdOf('embedder'), processIdOf('ranker')]).toEqual(processIds)
})

test('a word that no stack holds is rejected with 400', async () => {
  await expect(llm.tokenize({ model: 'regex', text: 'a'.repeat(600_000) })).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('a word of more than 262144 characters'),
  })
})

test('a text that crashes the tokenizer is rejected with 400, in the format of each API', async () => {
  const messages = [{ role: 'user', content: 'two  spaces' }]
  const message = expect.stringContaining("crashes llama.cpp's tokenizer")
  const rejection = { type: 'invalid_request_error', message }
  await llm.load('spaces')
  const processId = processIdOf('spaces')

  for (const path of ['/v1/messages', '/v1/messages/count_tokens'])
    expect(await post(path, { model: 'spaces', max_tokens: 1, messages })).toMatchObject({
      status: 400,
      body: { type: 'error', error: rejection },
    })
  expect(await post('/v1/chat/completions', { model: 'spaces', messages })).toMatchObject({
    status: 400,
    body: { error: rejection },
  })
  // After 5 s, a stream would have begun with 200.
  expect(await post('/api/chat', { model: 'spaces', messages, stream: false })).toMatchObject({
    status: 400,
    body: { error: message },
  })
  expect(processIdOf('spaces')).toBe(processId)
})

test.runIf(hasProc)(
  'a text that crashed the tokenizer is rejected from memory, without another crash',
  async () => {
    await llm.load('spaces')
    const processId = processIdOf('spaces')
    const tokenize = (text: string) => llm.tokenize({ model: 'spaces', text })
    const rejection = {
      code: 'invalid_request',
      message: expect.stringContaining("crashes llama.cpp's tokenizer"),
    }

    const last = await streamDuring('spaces', async () => {
      await expect(tokenize('two  spaces')).rejects.toMatchObject(rejection)
      const startedAt = performance.now()
      await expect(tokenize('two  spaces')).rejects.toMatchObject(rejection)

      // The child that crashed is not replaced.
      expect(childrenOf(processId)).toEqual([])
      expect(performance.now() - startedAt).toBeLessThan(200)
    })

    expect(last).toMatchObject({ type: 'end', usage: { outputTokens: 600 } })
    expect(await tokenize('one space')).not.toEqual([])
    expect(processIdOf('spaces')).toBe(processId)
  },
)
