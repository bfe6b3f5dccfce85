/** Hostile templates and constraints of one model are rejected, and the streams of another model continue. */
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLlm, type Llm } from '@modelmount/core'
import type { GenerateEvent, GenerateRequest } from '@modelmount/core/engine'
import { modelPath } from '@modelmount/tiny-model'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { callBudgetMs } from '../../packages/core/src/engine/local/model-process/workers/cpu-budget.ts'
import { forgedTemplate } from '../support/forgeries.ts'

const loop = '{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}'
/** Only the native template engine supports `pop` of lists. */
const popped = '{{ [1].pop() }}'
const templates = {
  endless: loop,
  native: popped + loop,
}

const properties = Object.fromEntries(
  Array.from({ length: 10_000 }, (_, index) => [`p${index}`, { type: 'string' }]),
)
const pattern = '^(a|b)*a(a|b){200}$'
const deep = `root ::= ${'('.repeat(9_000)}"a"${')'.repeat(9_000)}`

let folder: string
let llm: Llm
/** Gives the calls of hostile templates little CPU time. Their limit is not under test here. */
let impatient: Llm

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'neighbours-'))
  await copyFile(modelPath, join(folder, 'calm.gguf'))
  await copyFile(modelPath, join(folder, 'other.gguf'))
  for (const [name, hostile] of Object.entries(templates))
    await writeFile(join(folder, `${name}.gguf`), forgedTemplate(hostile))
  const local = { contextSize: 512, parallel: 8 }
  llm = await createLlm({ models: folder, local })
  const modelProcessPath = fileURLToPath(new URL('./short-budget.mjs', import.meta.url))
  impatient = await createLlm({ models: folder, local: { ...local, modelProcessPath } })
})

afterAll(async () => {
  await impatient.close()
  await llm.close()
  await rm(folder, { recursive: true })
})

/** Generates 200 tokens, and ignores end-of-sequence tokens. */
async function answer(
  fields: Partial<GenerateRequest>,
  onText = (): void => {},
  by = llm,
): Promise<Extract<GenerateEvent, { type: 'end' }>> {
  const request: GenerateRequest = {
    model: 'other',
    input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }] },
    maxTokens: 200,
    sampling: { ignoreEos: true },
    ...fields,
  }
  for await (const event of await by.generate(request, { signal: new AbortController().signal })) {
    if (event.type === 'text') onText()
    if (event.type === 'end') return event
  }
  throw new Error('The answer has no end.')
}

test.each<[what: string, ...hostile: Partial<GenerateRequest>[]]>([
  ['templates that never end, one of them in native code', { model: 'endless' }, { model: 'native' }],
  [
    'a schema of 10,000 properties',
    { format: { type: 'json-schema', schema: { type: 'object', properties } } },
  ],
  [
    'a pattern with an exponential automaton',
    { format: { type: 'json-schema', schema: { type: 'string', pattern } } },
  ],
  ['a deeply nested grammar', { format: { type: 'grammar', source: deep } }],
])(
  'eight streams of another model finish while calls are rejected: %s',
  async (_what, ...hostile) => {
    const app = hostile.some(({ model }) => model !== undefined) ? impatient : llm
    await answer({ model: 'calm', maxTokens: 1 }, undefined, app)
    const processIdOfCalm = () => app.loaded().find(({ name }) => name === 'calm:latest')?.processId
    const processId = processIdOfCalm()
    let rejections: Promise<unknown[]> | undefined
    let isOver = false
    const onText = (): void => {
      rejections ??= Promise.all(
        hostile.map((fields) => answer(fields, undefined, app).catch((error: unknown) => error)),
      ).finally(() => {
        isOver = true
      })
    }
    const generate = async (): Promise<void> => {
      do {
        const { finishReason, usage } = await answer({ model: 'calm' }, onText, app)
        expect([finishReason, usage.outputTokens]).toEqual(['length', 200])
      } while (!isOver)
    }

    await Promise.all(Array.from({ length: 8 }, generate))

    expect(await rejections).toMatchObject(hostile.map(() => ({ code: 'invalid_request' })))
    expect(processIdOfCalm()).toBe(processId)
  },
  20 * callBudgetMs,
)
