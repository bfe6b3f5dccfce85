/** Events of batches, of pulls and of the prompt cache on the diagnostics channels. */
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLlm, type Llm } from '@modelmount/core'
import { type DiagnosticListeners, subscribe } from '@modelmount/core/diagnostics'
import { scriptedEngine } from '@modelmount/core/testing'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
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
  const seen = watch(llm, ['batch:create', 'batch:item', 'batch:end'])

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
      item,
      item,
      { name: 'batch:end', ...of, status: 'ended' },
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
