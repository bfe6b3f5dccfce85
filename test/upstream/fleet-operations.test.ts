/** What operators see of the fleets of an app: in the admin API, and as metrics. */
import { createLlm } from '@modelmount/core'
import { adminRouter, metricsRouter } from '@modelmount/express'
import express from 'express'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { answerWith, startFleet } from '../support/fleet-servers.ts'
import { listen } from '../support/listen.ts'
import { sendJson } from '../support/upstream-server.ts'

test('the replicas of named engines are in the activity and the metrics, with load, cache hits and ejections', async () => {
  const { fleet, servers } = await startFleet(2, { maxFailures: 1 })
  const [failing, working] = servers
  if (!failing || !working) throw new Error('The fleet lacks servers.')
  failing.answer = (response) => sendJson(response, {}, 500)
  working.answer = answerWith('fine')
  const llm = await createLlm({
    models: emptyFolder(),
    auth: 'host',
    database: ':memory:',
    engines: { gpu: fleet },
  })
  const authenticate = () => ({ id: 'ops', scopes: ['admin:read'] as const })
  const app = express()
    .use('/admin', adminRouter(llm, { authenticate }))
    .use(metricsRouter(llm, { authenticate }))
  const { url, close } = await listen(app)
  onTestFinished(async () => {
    await close()
    await llm.close()
  })

  // Enough different prompts that some go to the failing replica first.
  for (let index = 0; index < 8; index++) await llm.chat(`Question ${index}`, { model: 'gpu/small' })

  const response = await fetch(`${url}/admin/activity`)
  const { replicas } = (await response.json()) as { readonly replicas: readonly object[] }
  expect(replicas).toEqual([
    expect.objectContaining({
      ...{ engine: 'gpu', url: `${failing.url}/`, state: 'ejected', ejections: 1, failedCalls: 1 },
      lastFailure: { kind: 'failed', at: expect.any(String) },
    }),
    expect.objectContaining({
      ...{ engine: 'gpu', url: `${working.url}/`, state: 'ready', calls: 8, failedCalls: 0, runningCalls: 0 },
      ejections: 0,
    }),
  ])
  const text = await (await fetch(`${url}/metrics`)).text()
  const of = (replica: string) => `engine="gpu",replica="${replica}/"`
  expect(text).toContain(`modelmount_replica_state{${of(failing.url)},state="ejected"} 1`)
  expect(text).toContain(`modelmount_replica_state{${of(working.url)},state="ejected"} 0`)
  expect(text).toContain(`modelmount_replica_calls_total{${of(working.url)}} 8`)
  expect(text).toContain(`modelmount_replica_ejections_total{${of(failing.url)}} 1`)
  // A second scrape does not count again.
  const again = await (await fetch(`${url}/metrics`)).text()
  expect(again).toContain(`modelmount_replica_calls_total{${of(working.url)}} 8`)
})
