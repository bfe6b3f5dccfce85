/** Pulls and pushes on the diagnostics channel. */
import { createLlm, routesFor } from '@modelmount/core'
import { type DiagnosticEvents, subscribe } from '@modelmount/core/diagnostics'
import { toNodeHandler } from '@modelmount/core/http'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'
import { SmallRegistry } from '../support/registry.ts'
import { all } from '../support/transfers.ts'

test('pulls, pushes and creations have events up to their last one, also if they fail or are aborted', async () => {
  const registry = await SmallRegistry.start()
  onTestFinished(() => registry.close())
  const store = { privateRegistries: [registry.host] }
  const llm = await createLlm({ models: emptyFolder(), store, scopes: ['models'] })
  onTestFinished(() => llm.close())
  const seen: DiagnosticEvents['modelmount:pull:progress'][] = []
  onTestFinished(subscribe(llm, { 'modelmount:pull:progress': (event) => seen.push(event) }))
  const name = `${registry.host}/team/bob`
  const server = await listen(toNodeHandler(routesFor(), llm))
  onTestFinished(() => server.close())
  const pull = async (model: string): Promise<string> => {
    const body = JSON.stringify({ model, insecure: true })
    const headers = { 'content-type': 'application/json' }
    return (await fetch(`${server.url}/api/pull`, { method: 'POST', headers, body })).text()
  }

  await all(llm.models.create({ name, from: 'tiny', system: 'You are Bob.' }))
  await all(llm.models.push(name, { insecure: true }))
  await llm.models.delete(name)
  expect(await pull(name)).toContain('success')
  expect(await pull(`${registry.host}/team/nobody`)).toContain('error')

  const left = new AbortController()
  for await (const _ of llm.models.pull(name, { insecure: true, signal: left.signal })) left.abort()

  const of = (kind: string, model: string) =>
    seen.filter((event) => event.kind === kind && event.model === model).map(({ llm: _, ...event }) => event)
  const transfers = [
    of('push', name),
    of('pull', name).slice(0, -2),
    of('pull', `${registry.host}/team/nobody`),
    of('pull', name).slice(-2),
  ]
  expect(transfers.map((events) => events.map(({ isLast }) => isLast).indexOf(true))).toEqual(
    transfers.map(({ length }) => length - 1),
  )
  expect(transfers.map((events) => [events[0]?.status, events.at(-1)?.status])).toEqual([
    ['retrieving manifest', 'success'],
    ['pulling manifest', 'success'],
    ['pulling manifest', 'failed'],
    ['pulling manifest', 'aborted'],
  ])
  expect(transfers.map((events) => events.at(-1)?.error?.code)).toEqual([
    ...[undefined, undefined],
    ...['not_found', undefined],
  ])
  expect(transfers[1]?.map(({ status }) => status)).toContain('writing manifest')
  expect(of('create', name).at(-1)).toMatchObject({ status: 'success', isLast: true })
})
