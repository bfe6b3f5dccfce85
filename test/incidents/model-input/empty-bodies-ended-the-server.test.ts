/** B-9: the body `{}` aborted the process of a server. Here every route gets empty and mistyped bodies. */
import { adminRoutes, createLlm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { scriptedEngine } from '@modelmount/core/testing'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { listen } from '../../support/listen.ts'
import { chats, post } from '../../support/served.ts'

const models = emptyFolder()
/** Routes for accounts at ollama.com. As in an Ollama without account, each has one fixed error. */
const accounts = ['/api/me', '/api/signout', '/api/user/keys/:key']
const digest = `sha256:${'0'.repeat(64)}`

const bodies = [
  ...['', '{}', '[]', 'null', '0', '-1', '1e999', 'true', '""', '"x"', '[null]', '[{}]', '{"":{}}'],
  ...['{"model":null}', '{"model":{}}', '{"model":[]}', '{"model":0}', '{"model":"tiny","messages":[null]}'],
  '{"model":"tiny","messages":[{}],"prompt":[{}],"input":[{}],"options":[],"stream":"yes"}',
  '{"model":"tiny","messages":{},"prompt":{},"input":{},"options":{"stop":{}},"tools":[[]]}',
  '{"model":"tiny","prompt":[[]],"input":[[]],"max_tokens":"","format":0,"keep_alive":{}}',
  '{"__proto__":{"model":"tiny"},"constructor":{}}',
]

test('every route answers every such body below 500, and the server answers the next call', async () => {
  const llm = await createLlm({
    engine: scriptedEngine('Hello there.'),
    models,
    auth: 'keys',
    database: ':memory:',
    // No request may leave the test.
    store: { registries: [], privateRegistries: ['127.0.0.1:1'] },
  })
  const { secret } = await llm.keys.create({ name: 'all', scopes: ['inference', 'models', 'admin'] })
  const headers = { 'x-api-key': secret, 'content-type': 'application/json' }
  const tables = [routesFor(undefined, { cloudRoutes: true }), adminRoutes()]
  const servers = await Promise.all(tables.map((table) => listen(toNodeHandler(table, llm))))
  onTestFinished(async () => {
    await Promise.all(servers.map(({ close }) => close()))
    await llm.close()
  })

  const failed: unknown[] = []
  let asked = 0
  for (const [index, { routes }] of tables.entries())
    for (const { method, path } of routes) {
      if (method === 'OPTIONS' || method === 'GET' || accounts.includes(path)) continue
      const at = path.replace(':digest', digest).replace(/[:*]\w+/, 'x')
      const answers = bodies.map(async (body) => {
        const response = await fetch(`${servers[index]?.url}${at}`, {
          method,
          headers,
          ...(method !== 'HEAD' && { body }),
        })
        const text = await response.text()
        asked++
        if (response.status >= 500) failed.push([method, path, body, response.status, text])
      })
      await Promise.all(answers)
    }

  expect(failed).toEqual([])
  expect(asked).toBeGreaterThan(20 * bodies.length)
  for (const { path, body } of chats)
    expect((await post(`${servers[0]?.url}${path}`, body, headers)).status).toBe(200)
}, 20_000)
