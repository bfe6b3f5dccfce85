/** Tests what operators see of a client that disconnects. */
import { once } from 'node:events'
import { createLlm } from '@modelmount/core'
import { registerMetrics } from '@modelmount/core/metrics'
import { scriptedEngine } from '@modelmount/core/testing'
import { Registry } from 'prom-client'
import request from 'supertest'
import { expect, onTestFinished, test } from 'vitest'
import { createApp, createMetricsApp } from './app.js'

test('the model stops when a client disconnects, and the metrics count an aborted call', async () => {
  const engine = scriptedEngine('word '.repeat(10_000), { delayMs: 2 })
  const llm = await createLlm({ engine })
  const registry = new Registry()
  registerMetrics(llm, registry)
  const server = createApp(llm).listen(0, '127.0.0.1')
  onTestFinished(async () => {
    server.close()
    await llm.close()
  })
  await once(server, 'listening')
  const client = new AbortController()
  const url = `http://127.0.0.1:${server.address().port}/api/greeting`
  const answer = fetch(url, { signal: client.signal })
  await expect.poll(() => engine.running).toBe(1)

  client.abort()

  await expect(answer).rejects.toThrow('aborted')
  await expect.poll(() => engine.running).toBe(0)
  const { text } = await request(createMetricsApp(registry)).get('/metrics').expect(200)
  expect(text).toMatch(/^modelmount_calls_total\{.*aborted.*\} 1$/m)
})
