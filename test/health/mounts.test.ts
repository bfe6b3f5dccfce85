/** The health routes in each mount, beside the routes of the app and of the models. */
import type { RequestListener } from 'node:http'
import { createLlm, type Llm } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { healthRoutes } from '@modelmount/core/operations'
import { scriptedEngine } from '@modelmount/core/testing'
import { healthRouter, llmRouter } from '@modelmount/express'
import { healthPlugin, llmPlugin } from '@modelmount/fastify'
import { healthRouter as koaHealthRouter } from '@modelmount/koa'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listenerOf } from '../support/fastify.ts'
import { listen } from '../support/listen.ts'
import { nestFastifyHandler, nestHandler } from '../support/nest.ts'

const mounts: Readonly<Record<string, (llm: Llm) => RequestListener>> = {
  Express: (llm) => express().use(healthRouter(llm), llmRouter(llm)),
  Fastify: (llm) => {
    const app = fastify()
    app.register(healthPlugin, { llm })
    app.register(llmPlugin, { llm, prefix: '/llm' })
    return listenerOf(app)
  },
  Koa: (llm) => new Koa().use(koaHealthRouter(llm).routes()).callback(),
  Nest: (llm) => nestHandler(llm, { health: true }),
  'Nest on Fastify': (llm) => nestFastifyHandler(llm, { health: { models: ['tiny'] } }),
  'Node’s own server': (llm) => toNodeHandler(healthRoutes(), llm),
}

async function open(): Promise<Llm> {
  const llm = await createLlm({ engine: scriptedEngine('Hello.'), models: emptyFolder() })
  onTestFinished(() => llm.close())
  return llm
}

test.each(Object.keys(mounts))('%s answers the probes, and 503 when the app closes', async (name) => {
  const llm = await open()
  const { url } = await listen((mounts[name] as (llm: Llm) => RequestListener)(llm))
  const probe = async (path: string) => {
    const response = await fetch(url + path)
    return [response.status, await response.text(), response.headers.get('cache-control')]
  }

  expect(await probe('/livez')).toEqual([200, 'ok', 'no-store'])
  expect(await probe('/readyz')).toEqual([200, 'ok', 'no-store'])
  expect(await probe('/startupz')).toEqual([200, 'ok', 'no-store'])
  const head = await fetch(`${url}/readyz`, { method: 'HEAD' })
  expect([head.status, await head.text()]).toEqual([200, ''])

  await llm.close()

  expect(await probe('/readyz')).toEqual([503, 'unavailable', 'no-store'])
  expect(await probe('/livez')).toEqual([200, 'ok', 'no-store'])
  expect(await probe('/startupz')).toEqual([200, 'ok', 'no-store'])
})
