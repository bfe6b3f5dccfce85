/**
 * a route without authentication passed engine flags from its body to the command line of the engine,
 * and overwrote files.
 */
import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { chats, serveScripted } from '../../support/served.ts'

const models = emptyFolder()

/** Flags of engines, as fields that no API has. */
const flags = {
  '--log-file': '/tmp/owned',
  'runtime-flags': ['--model', '/etc/passwd'],
  args: ['--slot-save-path', '/'],
  command: 'touch /tmp/owned',
  env: { LD_PRELOAD: '/tmp/owned.so' },
  lora_base: '/etc/passwd',
  model_path: '/etc/passwd',
  modelProcessPath: '/etc/passwd',
  n_discard: -1,
  contextSize: 1,
}

test.each(chats)('$path ignores unknown fields and options, as its API does', async ({ path, body }) => {
  const { engine, post } = await serveScripted(models)
  await post(path, body)
  const [plain] = engine.requests

  const inBody = await post(path, { ...body, ...flags })
  const inOptions = await post(path, { ...body, options: flags })

  expect([inBody.status, inOptions.status]).toEqual([200, 200])
  expect(engine.requests).toEqual([plain, plain, plain])
  expect(readdirSync(models)).toEqual([])
})

test('create rejects or ignores unknown parameters, and never passes them to the engine', async () => {
  const { engine, post } = await serveScripted(models, { scopes: ['inference', 'models'] })

  const made = await post('/api/create', { model: 'made', from: 'tiny', parameters: flags, stream: false })
  await post('/api/chat', { ...chats[2]?.body })
  await post('/api/chat', { ...chats[2]?.body, model: 'made' })

  expect(made.status).toBe(200)
  const [plain, other] = engine.requests
  expect(other).toEqual({ ...plain, model: other?.model })
})
