/** `GET /metrics` in each mount: who may read it, and what it has. */
import { channel } from 'node:diagnostics_channel'
import type { RequestListener } from 'node:http'
import { createLlm, type Llm, type LlmOptions } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { registerMetrics } from '@modelmount/core/metrics'
import { metricsRoutes } from '@modelmount/core/operations'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter, metricsRouter } from '@modelmount/express'
import { llmPlugin, metricsPlugin } from '@modelmount/fastify'
import { metricsRouter as koaMetricsRouter } from '@modelmount/koa'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { Counter, Registry } from 'prom-client'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listenerOf } from '../support/fastify.ts'
import { listen } from '../support/listen.ts'
import { nestFastifyHandler, nestHandler } from '../support/nest.ts'

const mounts: Readonly<Record<string, (llm: Llm) => RequestListener>> = {
  Express: (llm) => express().use(metricsRouter(llm), llmRouter(llm)),
  Fastify: (llm) => {
    const app = fastify()
    app.register(metricsPlugin, { llm })
    app.register(llmPlugin, { llm, prefix: '/llm' })
    return listenerOf(app)
  },
  Koa: (llm) => new Koa().use(koaMetricsRouter(llm).routes()).callback(),
  Nest: (llm) => nestHandler(llm, { metrics: true }),
  'Nest on Fastify': (llm) => nestFastifyHandler(llm, { metrics: true }),
  "Node's own server": (llm) => toNodeHandler(metricsRoutes(), llm),
}

async function open(options: LlmOptions = {}): Promise<Llm> {
  const llm = await createLlm({ engine: scriptedEngine('Hello.'), models: emptyFolder(), ...options })
  onTestFinished(() => llm.close())
  return llm
}

test.each(Object.keys(mounts))('%s serves the metrics to a key with the scope admin:read', async (name) => {
  const llm = await open({ auth: 'keys', database: ':memory:' })
  const user = await llm.keys.create({ name: 'app' })
  const viewer = await llm.keys.create({ name: 'prometheus', scopes: ['admin:read'] })
  const { url } = await listen((mounts[name] as (llm: Llm) => RequestListener)(llm))
  const get = (key?: string) =>
    fetch(`${url}/metrics`, { headers: key === undefined ? {} : { authorization: `Bearer ${key}` } })
  await get(viewer.secret)
  await llm.chat('Hello', { model: 'tiny' })

  const response = await get(viewer.secret)

  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    'text/plain; version=0.0.4; charset=utf-8',
  ])
  expect(await response.text()).toContain(
    'modelmount_calls_total{route="in-process",kind="generate",model="tiny:latest",status="ended",reason="stop"} 1\n',
  )
  expect([(await get()).status, (await get(user.secret)).status]).toEqual([401, 403])
})

test('in anonymous mode, only direct calls from this machine read the metrics, and no page of another origin', async () => {
  const llm = await open()
  const { url } = await listen(toNodeHandler(metricsRoutes(), llm))
  const statusWith = async (headers: Record<string, string>) =>
    (await fetch(`${url}/metrics`, { headers })).status

  expect(await statusWith({})).toBe(200)
  expect(await statusWith({ 'x-forwarded-for': '203.0.113.9' })).toBe(401)
  expect(await statusWith({ origin: 'http://localhost:5173' })).toBe(403)
})

test('the registry of the app is served as it is', async () => {
  const llm = await open()
  const registry = new Registry()
  new Counter({ name: 'orders_total', help: 'Orders.', registers: [registry] }).inc()
  onTestFinished(registerMetrics(llm, registry))
  const { url } = await listen(express().use(metricsRouter(llm, { registry })))

  const text = await (await fetch(`${url}/metrics`)).text()

  expect(text).toContain('orders_total 1')
  expect(text).toContain('# TYPE modelmount_calls_total counter')
})

test('responses count by API, route and status, also those without a call', async () => {
  const llm = await open()
  const { url } = await listen(express().use(metricsRouter(llm), llmRouter(llm)))
  await (await fetch(`${url}/metrics`)).text()
  const ask = (body: object) =>
    fetch(`${url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify(body) })

  await ask({})
  await (await ask({ model: 'tiny', messages: [{ role: 'user', content: 'Hi' }] })).text()

  const lines = (await (await fetch(`${url}/metrics`)).text())
    .split('\n')
    .filter((line) => line.startsWith('modelmount_http_responses_total'))
  const labels = 'api="openai",route="/v1/chat/completions",method="POST"'
  expect(lines).toEqual([
    `modelmount_http_responses_total{${labels},code="400"} 1`,
    `modelmount_http_responses_total{${labels},code="200"} 1`,
  ])
})

test('an option that is no registry throws a TypeError', () => {
  expect(() => metricsRoutes({ registry: {} as Registry })).toThrow(TypeError)
})

test('the routes listen to the events of an app only until it closes', async () => {
  const llm = await open()
  const { url } = await listen(toNodeHandler(metricsRoutes(), llm))
  await (await fetch(`${url}/metrics`)).text()
  const { hasSubscribers: before } = channel('modelmount:model:crash')

  await llm.close()

  expect([before, channel('modelmount:model:crash').hasSubscribers]).toEqual([true, false])
})
