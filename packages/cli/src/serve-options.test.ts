import type { LlmOptions } from '@modelmount/core'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type ServeOptions, toLlmOptions } from './serve-options.ts'

beforeEach(() => {
  for (const name of Object.keys(process.env)) if (name.startsWith('OLLAMA_')) vi.stubEnv(name, undefined)
})
afterEach(() => vi.unstubAllEnvs())

const resolve = (flags: Partial<ServeOptions>, config: LlmOptions = {}) =>
  toLlmOptions(
    { host: '127.0.0.1', port: 0, config: 'modelmount.json', ...flags },
    { config, prices: undefined },
  )

test('a flag takes precedence over the environment, and the environment over the file', () => {
  const config: LlmOptions = {
    models: ['/from/file'],
    maxQueued: 1,
    local: { keepAlive: '1m', contextSize: 100, parallel: 1, maxCalls: 5 },
    store: { prune: false, maxBytes: '1gb' },
  }
  vi.stubEnv('OLLAMA_KEEP_ALIVE', '2m')
  vi.stubEnv('OLLAMA_CONTEXT_LENGTH', '200')
  vi.stubEnv('OLLAMA_MODELS', '/from/environment')
  vi.stubEnv('OLLAMA_NOPRUNE', ' ')

  const options = resolve({ keepAlive: '3m', maxQueued: 3 }, config)

  // Core reads what is undefined here from the environment.
  expect(options.local).toMatchObject({ keepAlive: '3m', contextSize: undefined, parallel: 1, maxCalls: 5 })
  expect(options).toMatchObject({ models: undefined, maxQueued: 3, store: { prune: false, maxBytes: '1gb' } })
})

test('flags replace all models of the file', () => {
  const { models } = resolve({ model: 'a.gguf', models: 'folder' }, { models: ['other'] })

  expect(models).toEqual(['a.gguf', 'folder'])
})

test.each([
  [{ data: 'folder' }, 'folder/modelmount.db'],
  [{ data: 'postgres://localhost/app' }, 'postgres://localhost/app'],
  [{ data: 'postgresql://localhost/app' }, 'postgresql://localhost/app'],
  [{}, '/file.db'],
])('with %j, the database is %s', (flags, database) => {
  expect(resolve(flags, { database: '/file.db' }).database).toBe(database)
})

test('batches get a file in the folder of models, unless there is a database', () => {
  expect(resolve({ models: 'folder' }).batches).toEqual({ database: 'folder/modelmount.db' })
  expect(resolve({}, { models: ['a.gguf', '/folder'] }).batches).toEqual({
    database: '/folder/modelmount.db',
  })
  expect(resolve({ model: 'a.gguf' }).batches).toEqual({ database: undefined })
  expect(resolve({ models: 'folder' }, { database: '/x.db' }).batches).toEqual({ database: undefined })
  expect(resolve({ models: 'folder' }, { prices: {} }).batches).toEqual({ database: undefined })
  expect(resolve({ models: 'folder' }, { batches: { database: '/b.db', run: false } }).batches).toEqual({
    database: '/b.db',
    run: false,
  })
})

test('flags of origins add to the default ones, and the option of the file replaces them', () => {
  const app = 'https://app.example.com'
  vi.stubEnv('OLLAMA_ORIGINS', `${app}, chrome-extension://*`)

  expect(resolve({}).origins).toEqual(
    expect.arrayContaining(['http://localhost:*', app, 'chrome-extension://*']),
  )
  expect(resolve({ origins: ['*'] }).origins).toEqual(expect.not.arrayContaining([app]))
  expect(resolve({ host: '0.0.0.0', auth: false }).origins).toEqual([app, 'chrome-extension://*'])
  vi.stubEnv('OLLAMA_ORIGINS', '')
  expect(resolve({ host: '0.0.0.0', auth: false }).origins).toEqual([])
  expect(resolve({}, { origins: [app] }).origins).toEqual([app])
  expect(resolve({}).origins).toBeUndefined()
})

test.each([
  ['--origins', { origins: ['app.example.com'] }, ''],
  ['OLLAMA_ORIGINS', {}, 'app.example.com'],
])('an origin without a scheme in %s is rejected', (name, flags, variable) => {
  vi.stubEnv('OLLAMA_ORIGINS', variable)

  expect(() => resolve(flags)).toThrow(
    `${name}: Expected origins such as https://app.example.com, or *, got 'app.example.com'.`,
  )
})

test('the file may require API keys', () => {
  expect(resolve({ host: '0.0.0.0', admin: true }, { auth: 'keys' })).toMatchObject({ auth: 'keys' })
})

test.each([
  [{ host: '0.0.0.0' }, { auth: 'anonymous' }, 'Other machines can reach 0.0.0.0. Add --auth keys'],
  [{ auth: false }, { auth: 'keys' }, "--no-auth and `auth: 'keys'` in modelmount.json exclude each other"],
  [{}, { auth: 'host' }, "modelmount.json: Expected `auth` to be 'keys' or 'anonymous', got 'host'"],
  [{ admin: true }, {}, '--admin requires API keys'],
  [{ model: 'a.gguf' }, { auth: 'keys' }, '--model has none. Add --data FOLDER.'],
] as const)('flags %j and the file %j are rejected', (flags, config, message) => {
  expect(() => resolve(flags, config)).toThrow(message)
})
