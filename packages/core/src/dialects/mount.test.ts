import { describe, expect, test } from 'vitest'
import { createLlm } from '../create-llm.ts'
import { toFetchHandler } from '../http/fetch.ts'
import { toNodeHandler } from '../http/node.ts'
import type { Llm } from '../llm.ts'
import { scriptedEngine } from '../testing/scripted-engine.ts'
import { adminRoutes, routesFor } from './index.ts'
import { type MountOptions, prepareAdminMount, prepareMount } from './mount.ts'

const engine = scriptedEngine('Hello there.')
const llm = await createLlm({ engine, models: [] })

test('without options all routes are mounted, with bodies up to 32 MB', () => {
  const { routes, bodyLimit } = prepareMount(llm, {})

  expect(routes.map(({ method, path }) => `${method} ${path}`)).toContain('POST /v1/chat/completions')
  expect(bodyLimit).toBe(32 * 1024 * 1024)
})

test.each([
  [{ bodyLimit: '10 MB' }, 10 * 1024 * 1024],
  [{ bodyLimit: '8mb' }, 8 * 1024 * 1024],
  [{ bodyLimit: 1_000 }, 1_000],
])('the options %j limit bodies to %i bytes', (options, bytes) => {
  expect(prepareMount(llm, options as MountOptions<unknown>).bodyLimit).toBe(bytes)
})

test.each([
  [{ bodyLimit: '10m' }, "such as '32mb'"],
  [{ bodyLimit: Number.NaN }, "such as '32mb'"],
  [{ bodyLimit: -1 }, "such as '32mb'"],
  [{ dialects: [] }, 'Expected `dialects`'],
  [{ dialects: 'openai' }, 'Expected `dialects`'],
  [{ dialects: ['opnai'] }, "got 'opnai'"],
  [{ unknownRoutes: 'fall' }, "'pass' or 'error'"],
  [{ unknownRoutes: null }, "'pass' or 'error', got 'null'"],
  [{ cloudRoutes: 'yes' }, 'Expected `cloudRoutes` to be true or false'],
  [{ dialect: ['openai'] }, 'Unknown option `dialect`'],
  [{ prefix: '/llm' }, 'Unknown option `prefix`'],
])('the options %j throw a TypeError', (options, message) => {
  const mounting = () => prepareMount(llm, options as MountOptions<unknown>)

  expect(mounting).toThrow(TypeError)
  expect(mounting).toThrow(message)
})

test.each([
  [undefined, '', true],
  [undefined, '/llm', false],
  ['pass', '/llm', true],
  ['error', '', false],
] as const)(
  'with unknownRoutes: %s, requests that match no route at %j pass: %s',
  (unknownRoutes, prefix, passes) => {
    expect(prepareMount(llm, { unknownRoutes }).passesUnmatched(prefix)).toBe(passes)
  },
)

test('the error for a promise of an Llm says that `await` is missing', () => {
  expect(() => prepareMount(Promise.resolve(llm) as unknown as Llm, {})).toThrow('await createLlm()')
  expect(() => prepareMount(undefined as unknown as Llm, {})).toThrow('Expected an Llm, got undefined')
})

test('the former option `caller` is an error that names `authenticate`', async () => {
  const hosted = await createLlm({ engine, models: [], auth: 'host' })
  const options = { caller: () => ({ id: 'ann' }) } as object

  for (const mount of [
    () => prepareMount(hosted, options),
    () => prepareAdminMount(hosted, options),
    () => toNodeHandler(routesFor(), hosted, options),
    () => toFetchHandler(routesFor(), hosted, options),
  ])
    expect(mount).toThrow(/^Unknown option `caller`, expected one of: .*\bauthenticate\b/)
})

/** Each way to mount routes, with the same checks. */
const mounts: Readonly<Record<string, (llm: Llm, options?: object) => unknown>> = {
  'a router': (llm, options = {}) => prepareMount(llm, options),
  'a router of the admin API': (llm, options = {}) => prepareAdminMount(llm, options),
  'toNodeHandler()': (llm, options) => toNodeHandler(routesFor(), llm, options),
  'toFetchHandler()': (llm, options) => toFetchHandler(routesFor(), llm, options),
  'toFetchHandler() with the admin API': (llm, options) => toFetchHandler(adminRoutes(), llm, options),
}

describe.each(Object.entries(mounts))('%s', (_, mount) => {
  test('requires `authenticate` with `auth: host`', async () => {
    const hosted = await createLlm({ engine, models: [], auth: 'host', database: ':memory:' })

    expect(() => mount(hosted)).toThrow(/^With `auth: 'host'`, expected the option `authenticate`/)
    expect(() => mount(hosted, { authenticate: () => null })).not.toThrow()
    await hosted.close()
  })

  test('rejects `authenticate` without `auth: host`, which would never call it', () => {
    expect(() => mount(llm, { authenticate: () => null })).toThrow("`auth` is 'anonymous'")
  })

  test('expects an Llm, and not a promise of it', () => {
    expect(() => mount(Promise.resolve(llm) as unknown as Llm)).toThrow('write `await createLlm()`')
    expect(() => mount({} as Llm)).toThrow('Expected an Llm, got [object Object]')
  })
})

test('the admin API needs a database in each mount', () => {
  expect(() => prepareAdminMount(llm, {})).toThrow('The admin API needs a database')
  expect(() => toNodeHandler(adminRoutes(), llm)).toThrow('The admin API needs a database')
})

test('a handler without routes says where they belong', () => {
  expect(() => toNodeHandler(llm as never, {})).toThrow(/^Expected routes as the first argument/)
  expect(() => toFetchHandler(llm as never, {})).toThrow(/^Expected routes as the first argument/)
})

test.each([{ auth: 'anonymous' }, { auth: 'keys', database: ':memory:' }] as const)(
  '`authenticate` is an error with `auth: $auth`, which would never call it',
  async (options) => {
    const other = await createLlm({ engine, models: [], ...options })
    const authenticate = () => ({ id: 'ann' })

    expect(() => prepareMount(other, { authenticate })).toThrow(`\`auth\` is '${options.auth}'`)
    expect(() => prepareAdminMount(other, { authenticate })).toThrow(TypeError)
    await other.close()
  },
)
