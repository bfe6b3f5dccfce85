/**
 * B-7: a template runs for seconds. Here, one tenant's slow templates and long texts kept all other tenants
 * waiting.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm, type Llm } from '@modelmount/core'
import type { GenerateRequest } from '@modelmount/core/engine'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { forgedTemplate } from '../../support/forgeries.ts'

/** The template takes minutes for the message "slow", and as long as usual for all others. */
const loop = '{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}'
const template = `{% if messages[0].content == "slow" %}${loop}{% endif %}{{ messages[0].content }}`

let folder: string
let llm: Llm

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'turns-'))
  await writeFile(join(folder, 'shared.gguf'), forgedTemplate(template))
  llm = await createLlm({
    models: folder,
    local: { contextSize: 512, maxContextSize: 512, runtimeDir: join(folder, 'run') },
  })
  await timeToFirstText('warm-up')
})

afterAll(async () => {
  await llm.close()
  await rm(folder, { recursive: true })
})

/** A schema that takes a few hundred milliseconds to build a grammar from. No two are equal. */
function costlySchema(name: string): Exclude<GenerateRequest['format'], undefined> {
  const properties = Array.from({ length: 60 }, (_, index) => [
    `${name}${index}`,
    { type: 'string', pattern: `^([a-z]{1,${20 + index}}|x)(${name}|y)+$` },
  ])
  return { type: 'json-schema', schema: { type: 'object', properties: Object.fromEntries(properties) } }
}

const chat = (text: string): GenerateRequest => ({
  model: 'shared',
  input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text }] }] },
  maxTokens: 4,
  sampling: { ignoreEos: true },
})

/** In ms. */
async function timeToFirstText(id: string, more: Partial<GenerateRequest> = {}): Promise<number> {
  const startedAt = performance.now()
  const call = { signal: new AbortController().signal, caller: { id } }
  let first: number | undefined
  for await (const { type } of await llm.generate({ ...chat('Hello'), ...more }, call))
    if (type === 'text') first ??= performance.now() - startedAt
  return first ?? Number.POSITIVE_INFINITY
}

/** Starts calls of one tenant, and waits until the model process has received them. */
async function flood(
  count: number,
  start: (signal: AbortSignal) => Promise<unknown>,
): Promise<{ end(): Promise<void> }> {
  const controller = new AbortController()
  const { signal } = controller
  const calls = Array.from({ length: count }, () => start(signal).catch((error: unknown) => error))
  const inputs = ['x']
  await llm.embed({ model: 'shared', inputs }, { signal }).catch(() => {})
  return {
    end: async () => {
      controller.abort()
      await Promise.all(calls)
    },
  }
}

test('while two tenants render eight slow templates each, the first tokens of other tenants come soon', async () => {
  const floods = await Promise.all(
    ['greedy', 'hostile'].map((id) =>
      flood(8, (signal) => llm.render(chat('slow'), { signal, caller: { id } })),
    ),
  )

  const times: number[] = []
  for (const id of ['ann', 'bob', 'ann']) times.push(await timeToFirstText(id))
  for (const { end } of floods) await end()

  // Each of the two tenants keeps the worker for quick jobs for a second, once.
  expect(Math.max(...times)).toBeLessThan(4_000)
  expect(Math.min(...times)).toBeLessThan(1_000)
}, 90_000)

test('a call whose template takes too long is rejected with 400, which names the limit', async () => {
  const call = { signal: new AbortController().signal, caller: { id: 'slow' } }

  await expect(llm.render(chat('slow'), call)).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('The limit is 10 s of CPU time for each call'),
    details: { param: 'messages' },
  })
  expect(await timeToFirstText('slow')).toBeLessThan(1_500)
}, 60_000)

test('while a tenant tokenizes and counts long texts, the first tokens of other tenants come soon', async () => {
  const words = 'some words and '.repeat(200_000)
  const caller = { id: 'greedy' }
  const tokenizing = await flood(8, (signal) =>
    llm.tokenize({ model: 'shared', text: words }, { signal, caller }),
  )
  const counting = await flood(8, (signal) => llm.countTokens(chat(words), { signal, caller }))

  const times = [await timeToFirstText('ann'), await timeToFirstText('bob')]
  await tokenizing.end()
  await counting.end()

  // Without turns, the first tokens would wait for 48 MB of text.
  expect(Math.max(...times)).toBeLessThan(3_000)
}, 60_000)

test('while a tenant sends costly schemas, the structured answers of other tenants start soon', async () => {
  let built = 0
  const caller = { id: 'greedy' }
  const { end } = await flood(30, async (signal) => {
    const format = costlySchema(`p${built++}x`)
    for await (const _event of await llm.generate({ ...chat('Hello'), format }, { signal, caller }));
  })

  const format = { type: 'json-schema', schema: { type: 'object', properties: { name: {} } } } as const
  const first = await timeToFirstText('ann', { format }).finally(end)

  // Without turns, it would wait for the grammars of all of them.
  expect(first).toBeLessThan(2_000)
}, 60_000)

test('one caller cannot take the place of generations by counting', async () => {
  const caller = { id: 'greedy' }
  const { end } = await flood(600, (signal) => llm.countTokens(chat('slow'), { signal, caller }))

  const first = await timeToFirstText('ann').finally(end)

  expect(first).toBeLessThan(4_000)
}, 60_000)
