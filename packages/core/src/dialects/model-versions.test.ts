/** Snapshots and digests of models, over HTTP. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import Anthropic from '@anthropic-ai/sdk'
import { modelPath } from '@modelmount/tiny-model'
import { expect, test, vi } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { type Served, serve } from '../../../../test/support/served.ts'
import { scriptedEngine } from '../testing/scripted-engine.ts'

const anthropicVersion = { 'anthropic-version': '2023-06-01' }
const models = emptyFolder()
const day = () => new Date().toISOString().slice(0, 10).replaceAll('-', '')
const digest = createHash('sha256')
  .update(await readFile(modelPath))
  .digest('hex')
const paths = ['/api/chat', '/v1/chat/completions', '/v1/messages'] as const

const ask = async ({ post }: Served, path: string, model: string) => {
  const messages = [{ role: 'user', content: 'Hi' }]
  const response = await post(path, { model, messages, max_tokens: 5, stream: false })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

const idsOf = async ({ url }: Served, headers: Readonly<Record<string, string>> = {}) => {
  const { data } = (await (await fetch(`${url}/v1/models`, { headers })).json()) as {
    data: { id: string; created_at: string }[]
  }
  return data
}

/** Waits until the file of the built-in model is hashed. */
async function waitForSnapshot(served: Served) {
  return vi.waitFor(
    async () => {
      const found = (await idsOf(served, anthropicVersion)).find(({ id }) => /^tiny-\d{8}$/.test(id))
      expect(found).toBeDefined()
      return found as { id: string; created_at: string }
    },
    { timeout: 10_000 },
  )
}

test('only clients of Anthropic see snapshots, and every API answers them', async () => {
  const before = day()
  const served = await serve({ models, engine: scriptedEngine('Hi.') })
  const { id, created_at } = await waitForSnapshot(served)
  const found = await fetch(`${served.url}/v1/models/${id}`, { headers: anthropicVersion })
  const { models: tags } = (await (await fetch(`${served.url}/api/tags`)).json()) as { models: object[] }

  expect([`tiny-${before}`, `tiny-${day()}`]).toContain(id)
  expect(created_at.slice(0, 10).replaceAll('-', '')).toBe(id.slice(-8))
  expect(await found.json()).toMatchObject({ id, created_at })
  expect((await idsOf(served)).map(({ id }) => id)).toEqual(['tiny:latest'])
  expect(tags).toHaveLength(1)
  for (const path of paths)
    expect(await ask(served, path, id)).toMatchObject({ status: 200, body: { model: id } })
})

test('the SDK pages through models, snapshots and aliases', async () => {
  const aliases = { 'claude-a': 'tiny', 'claude-b': 'tiny', 'claude-*': 'tiny' }
  const served = await serve({ models, engine: scriptedEngine('Hi.'), aliases })
  const { id } = await waitForSnapshot(served)
  const client = new Anthropic({ baseURL: served.url, apiKey: 'any' })
  const [forward, backward]: [string[], string[]] = [[], []]
  for await (const { id } of client.models.list({ limit: 2 })) forward.push(id)
  const last = forward.at(-1) as string
  for await (const { id } of client.models.list({ limit: 2, before_id: last })) backward.push(id)

  expect(forward).toEqual([id, 'tiny:latest', 'claude-a', 'claude-b'])
  expect([...backward].sort()).toEqual(forward.slice(0, -1).sort())
  expect((await client.models.retrieve('claude-x')).id).toBe('tiny:latest')
  await expect(client.models.retrieve('tiny-20200101')).rejects.toMatchObject({
    status: 404,
    type: 'not_found_error',
  })
})

test('each API answers one version of a model, by the digest of its contents', async () => {
  const served = await serve({ models, engine: scriptedEngine('Hi.') })
  const name = `tiny@sha256:${digest}`
  const shown = await served.post('/api/show', { model: name })

  for (const path of paths)
    expect(await ask(served, path, name)).toMatchObject({ status: 200, body: { model: name } })
  expect(shown.status).toBe(200)
  const found = await fetch(`${served.url}/v1/models/${encodeURIComponent(name)}`)
  expect(await found.json()).toMatchObject({ id: name, object: 'model' })
})

test('another version is a 404, and a wrong digest a 400, in each API', async () => {
  const served = await serve({ models })
  const statusesOf = (model: string) =>
    Promise.all(paths.map(async (path) => (await ask(served, path, model)).status))

  expect(await statusesOf(`tiny@sha256:${'0'.repeat(64)}`)).toEqual([404, 404, 404])
  expect(await statusesOf(`other@sha256:${digest}`)).toEqual([404, 404, 404])
  expect(await statusesOf('tiny-20200101')).toEqual([404, 404, 404])
  for (const name of ['x@sha256:abc', `tiny@sha256:${digest}0`]) {
    expect(await statusesOf(name)).toEqual([400, 400, 400])
    for (const headers of [{}, anthropicVersion])
      expect((await fetch(`${served.url}/v1/models/${name}`, { headers })).status).toBe(400)
    expect((await served.post('/api/show', { model: name })).status).toBe(400)
  }
})

test('permissions, prices and limits use the model, by whichever snapshot or digest it was called', async () => {
  const served = await serve({
    models,
    engine: scriptedEngine('Hi.'),
    database: ':memory:',
    prices: { tiny: { inputPerMillionUsd: 0, outputPerMillionUsd: 1 } },
    modelLimits: { tiny: { requestsPerMinute: 2 } },
  })
  const { llm } = served
  const { id } = await waitForSnapshot(served)
  const names = [id, `tiny@sha256:${digest}`]
  const [own, other] = [
    llm.as({ id: 'own', models: ['tiny'] }),
    llm.as({ id: 'other', models: ['x', ...names] }),
  ]

  for (const model of names) {
    expect((await own.chat('Hi', { model })).text).toBe('Hi.')
    expect((await own.models.get(model)).name).toBe('tiny:latest')
  }
  await expect(own.chat('Hi', { model: id })).rejects.toMatchObject({ code: 'rate_limit' })
  expect((await llm.usage.calls()).map(({ model }) => model)).toEqual(['tiny:latest', 'tiny:latest'])
  expect(await other.models.snapshots()).toEqual([])
  await expect(other.chat('Hi', { model: id })).rejects.toMatchObject({ code: 'permission' })
})
