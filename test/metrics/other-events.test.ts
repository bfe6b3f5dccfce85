/** Events of batches, of pulls and of the prompt cache on the diagnostics channels. */
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLlm, type Llm, LlmError, routesFor } from '@modelmount/core'
import { type DiagnosticListeners, subscribe } from '@modelmount/core/diagnostics'
import { toNodeHandler } from '@modelmount/core/http'
import { scriptedEngine } from '@modelmount/core/testing'
import OpenAI from 'openai'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'
import { noiseModel } from '../support/models.ts'

/** Records the events of some channels, without their `llm`. */
function watch(llm: Llm, names: readonly string[]): readonly object[] {
  const seen: object[] = []
  const listeners = names.map((name) => [
    `modelmount:${name}`,
    ({ llm: _, ...event }: { readonly llm: object }) => seen.push({ name, ...event }),
  ])
  onTestFinished(subscribe(llm, Object.fromEntries(listeners) as DiagnosticListeners))
  return seen
}

const none = { succeeded: 0, errored: 0, canceled: 0, expired: 0 }
const request = (custom_id: string) => ({
  custom_id,
  params: { model: 'tiny', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] },
})

test('a batch is created, each of its items ends, and then the batch', async () => {
  const llm = await createLlm({
    engine: scriptedEngine('Hello.'),
    models: emptyFolder(),
    database: ':memory:',
  })
  onTestFinished(() => llm.close())
  const seen = watch(llm, ['batch:create', 'batch:start', 'batch:item', 'batch:end'])

  const { id } = await llm.batches.create([request('a'), request('b')], {
    caller: { id: 'ann', tenant: 'team' },
  })
  await llm.batches.waitUntilEnded(id)

  const of = { batch: id, tenant: 'team' }
  const item = { name: 'batch:item', ...of, outcome: 'succeeded', items: 1 }
  await expect
    .poll(() => seen)
    .toEqual([
      {
        ...{ name: 'batch:create', ...of, caller: 'ann', format: 'anthropic' },
        ...{ endpoint: '/v1/messages', items: 2 },
      },
      { name: 'batch:start', ...of, items: 2 },
      item,
      item,
      { name: 'batch:end', ...of, status: 'ended', counts: { ...none, succeeded: 2 } },
    ])
})

test('the items of a batch from a file can run when the file is read, and an invalid file fails', async () => {
  const engine = scriptedEngine(({ maxTokens }) =>
    maxTokens === 1 ? new LlmError('invalid_request', 'No.') : 'Hi',
  )
  const llm = await createLlm({ engine, models: emptyFolder(), database: ':memory:', auth: 'host' })
  onTestFinished(() => llm.close())
  const seen = watch(llm, ['batch:create', 'batch:start', 'batch:item', 'batch:end'])
  const server = await listen(toNodeHandler(routesFor(), llm, { authenticate: () => ({ id: 'ann' }) }))
  onTestFinished(() => server.close())
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any', maxRetries: 0 })
  const run = async (lines: readonly unknown[]) => {
    const text = lines.map((line) => JSON.stringify(line)).join('\n')
    const file = await client.files.create({ file: new File([text], 'in.jsonl'), purpose: 'batch' })
    const endpoint = '/v1/chat/completions'
    const { id } = await client.batches.create({ input_file_id: file.id, endpoint, completion_window: '24h' })
    await llm.batches.waitUntilEnded(id)
    return id
  }
  const line = (custom_id: string, max_tokens: number) => {
    const body = { model: 'tiny', max_tokens, messages: [{ role: 'user', content: 'Hi' }] }
    return { custom_id, method: 'POST', url: '/v1/chat/completions', body }
  }

  const id = await run([line('a', 5), line('b', 1)])
  const invalid = await run([{ custom_id: 'c' }])

  const of = { batch: id, tenant: 'ann' }
  const create = { name: 'batch:create', tenant: 'ann', caller: 'ann', format: 'openai', items: undefined }
  const endpoint = '/v1/chat/completions'
  const ofBatch = (wanted: string) => seen.filter((event) => 'batch' in event && event.batch === wanted)
  await expect
    .poll(() => ofBatch(id))
    .toEqual([
      { ...create, batch: id, endpoint },
      { name: 'batch:start', ...of, items: 2 },
      { name: 'batch:item', ...of, outcome: expect.any(String), items: 1 },
      { name: 'batch:item', ...of, outcome: expect.any(String), items: 1 },
      { name: 'batch:end', ...of, status: 'ended', counts: { ...none, succeeded: 1, errored: 1 } },
    ])
  await expect
    .poll(() => ofBatch(invalid))
    .toEqual([
      { ...create, batch: invalid, endpoint },
      { name: 'batch:end', batch: invalid, tenant: 'ann', status: 'failed', counts: none },
    ])
})

test('saved states that a deletion drops are reported', async () => {
  const models = emptyFolder()
  await copyFile(noiseModel, join(models, 'noise.gguf'))
  const llm = await createLlm({ models, database: ':memory:', local: { parallel: 1 } })
  onTestFinished(() => llm.close())
  const seen = watch(llm, ['cache:evict'])
  const long = Array.from({ length: 400 }, (_, index) => `word ${index}`).join(' ')
  const options = { model: 'noise', maxTokens: 1, caller: { id: 'ann' } }
  await llm.chat([{ role: 'user', content: long }], options)
  await llm.chat('Another prompt', { ...options, caller: { id: 'bob' } })
  await expect.poll(() => llm.loaded()[0]?.activity?.cachedStates, { timeout: 5_000 }).toBeGreaterThan(0)

  await llm.tenants.delete('ann')

  await expect
    .poll(() => seen, { timeout: 5_000 })
    .toMatchObject([{ model: 'noise:latest', reason: 'deleted', states: expect.any(Number) }])
})
