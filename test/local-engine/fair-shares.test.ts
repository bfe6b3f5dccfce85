/** Tenants that share one sequence: an answer that gives up its sequence continues exactly where it was. */
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm, type Llm } from '@modelmount/core'
import type { GenerateEvent, GenerateRequest } from '@modelmount/core/engine'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { noiseModel, recurrentModel, slidingWindowModel } from '../support/models.ts'
import '../support/own-run-folder.ts'

let folder: string
let llm: Llm

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'models-'))
  const models = { dense: noiseModel, recurrent: recurrentModel, window: slidingWindowModel }
  for (const [name, path] of Object.entries(models)) await copyFile(path, join(folder, `${name}.gguf`))
  llm = await createLlm({ models: folder, local: { contextSize: 4096, parallel: 1 } })
})
afterAll(async () => {
  await llm.close()
  await rm(folder, { recursive: true })
})

type Asked = Omit<GenerateRequest, 'input'>

interface Answer {
  readonly text: string
  readonly end: Extract<GenerateEvent, { type: 'end' }>
  /** Log probabilities of the prompt and the output. */
  readonly logprobs: readonly unknown[]
  /** Times of the pieces of text, in ms. */
  readonly at: readonly number[]
}

async function ask(tenant: string, request: Asked, prompt: string): Promise<Answer> {
  const at: number[] = []
  const logprobs: unknown[] = []
  let text = ''
  let end: GenerateEvent | undefined
  const input = { kind: 'text', prompt: [prompt], template: false } as const
  const generation = await llm.generate(
    { ...request, input, returnTokens: true },
    { signal: new AbortController().signal, caller: { id: tenant } },
  )
  for await (const event of generation) {
    if (event.type === 'prompt') logprobs.push(...event.tokens)
    if (event.type === 'end') end = event
    if (event.type !== 'text') continue
    text += event.text
    logprobs.push(...(event.logprobs ?? []))
    at.push(performance.now())
  }
  if (end?.type !== 'end') throw new Error('The answer has no end.')
  return { text, end, logprobs, at }
}

const story = 'Once upon a time there was a little '.repeat(8)

/** The answer while two other tenants want the same sequence. Checks that both got it before the answer ended. */
async function askBeside(request: Asked, sampling: Asked['sampling'] = {}): Promise<Answer> {
  const other = { model: request.model, maxTokens: 200, sampling: { ...sampling, ignoreEos: true } }
  const [answer, ...others] = await Promise.all([
    ask('ann', request, story),
    ask('ben', other, `${story}cat`),
    ask('cleo', other, `${story}dog`),
  ])
  const end = answer.at.at(-1) as number
  const isSeededWindow = request.model === 'window' && request.sampling?.seed !== undefined
  // A seeded answer beyond the attention window keeps its sequence, since its restored state would differ.
  if (!isSeededWindow) for (const { at } of others) expect(at[0]).toBeLessThan(end)
  return answer
}

const resultOf = ({ text, end, logprobs }: Answer) => {
  const { finishReason, stopSequence, tokens } = end
  return { text, finishReason, stopSequence, tokens, logprobs }
}

test.each<[string, string, Partial<Asked>]>([
  ['with a seed', 'dense', { sampling: { temperature: 1, seed: 5 } }],
  ['without a seed', 'dense', { sampling: { temperature: 0 } }],
  [
    'with penalties',
    'dense',
    {
      sampling: {
        ...{ temperature: 1, seed: 6, repeatPenalty: 1.2, repeatLastN: 64 },
        ...{ frequencyPenalty: 0.3, presencePenalty: 0.2 },
      },
    },
  ],
  ['with logprobs', 'dense', { sampling: { temperature: 1, seed: 8 }, logprobs: 3 }],
  [
    'with logprobs of the prompt',
    'dense',
    { sampling: { temperature: 1, seed: 9 }, logprobs: 1, promptLogprobs: true },
  ],
  [
    'with a grammar',
    'dense',
    { sampling: { temperature: 1, seed: 4 }, format: { type: 'grammar', source: 'root ::= [a-z ]*' } },
  ],
  ['with a seed, of a recurrent model', 'recurrent', { sampling: { temperature: 1, seed: 5 } }],
  ['without a seed, of a recurrent model', 'recurrent', { sampling: { temperature: 0 } }],
  ['with a seed, of a model with a sliding window', 'window', { sampling: { temperature: 1, seed: 5 } }],
  ['without a seed, of a model with a sliding window', 'window', { sampling: { temperature: 0 } }],
])('an answer %s is the same beside others as alone', async (_, model, { sampling, ...more }) => {
  const request = { model, maxTokens: 700, sampling: { ...sampling, ignoreEos: true }, ...more }
  const alone = await ask('alone', request, story)

  const beside = await askBeside(request, sampling)

  expect(alone.end.tokens?.length).toBeGreaterThan(700)
  expect(resultOf(beside)).toEqual(resultOf(alone))
})

test('an answer ends at the same stop sequence', async () => {
  const request = { model: 'dense', maxTokens: 700, sampling: { temperature: 1, seed: 5, ignoreEos: true } }
  const { text } = await ask('alone', request, story)
  const isFirst = (at: number): boolean => text.indexOf(text.slice(at, at + 8)) === at
  const at = [...Array(text.length).keys()].find((one) => one > text.length * 0.8 && isFirst(one)) as number
  const stop = text.slice(at, at + 8)

  const beside = await askBeside({ ...request, stop: [stop] })

  expect(beside.text).toBe(text.slice(0, at))
  expect(beside.end).toMatchObject({ finishReason: 'stop', stopSequence: stop })
})

test('structured output continues', async () => {
  const request = {
    model: 'dense',
    maxTokens: 1_500,
    sampling: { temperature: 1, seed: 3 },
    format: {
      type: 'json-schema',
      schema: {
        type: 'array',
        items: { type: 'integer', minimum: 0, maximum: 9 },
        minItems: 300,
        maxItems: 300,
      },
    },
  } as const satisfies Asked
  const alone = await ask('alone', request, story)

  const beside = await askBeside(request)

  expect(resultOf(beside)).toEqual(resultOf(alone))
  expect(JSON.parse(beside.text)).toHaveLength(300)
})
