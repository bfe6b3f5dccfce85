import { availableParallelism, homedir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type LlmOptions, resolveOptions } from './options.ts'
import { scriptedEngine } from './testing/scripted-engine.ts'

test('without options and environment, models are where Ollama keeps them, and the engine decides the rest', () => {
  const resolved = resolveOptions({}, {})

  expect(resolved).toEqual({
    models: [join(homedir(), '.ollama', 'models')],
    local: { threads: undefined, contextSize: undefined, keepAlive: 300_000, modelProcess: undefined },
    engine: undefined,
    access: { auth: undefined, origins: undefined },
    logger: undefined,
  })
})

test('the environment is taken where there is no option', () => {
  const resolved = resolveOptions({}, { OLLAMA_MODELS: '/srv/models', OLLAMA_CONTEXT_LENGTH: '8192' })

  expect(resolved.models).toEqual(['/srv/models'])
  expect(resolved.local.contextSize).toBe(8_192)
})

test('an option wins over the environment', () => {
  const resolved = resolveOptions(
    { models: '/mine', local: { contextSize: 512 } },
    { OLLAMA_MODELS: '/srv/models', OLLAMA_CONTEXT_LENGTH: '8192' },
  )

  expect(resolved.models).toEqual(['/mine'])
  expect(resolved.local.contextSize).toBe(512)
})

test('an option that is undefined is not given', () => {
  const resolved = resolveOptions(
    { models: undefined, local: { threads: undefined, contextSize: undefined }, engine: undefined },
    { OLLAMA_MODELS: '/srv/models', OLLAMA_CONTEXT_LENGTH: '8192' },
  )

  expect(resolved.models).toEqual(['/srv/models'])
  expect(resolved.local).toMatchObject({ threads: undefined, contextSize: 8_192, keepAlive: 300_000 })
})

test('an environment variable that is empty is not given', () => {
  const resolved = resolveOptions({}, { OLLAMA_MODELS: '', OLLAMA_CONTEXT_LENGTH: '' })

  expect(resolved.models).toEqual([join(homedir(), '.ollama', 'models')])
  expect(resolved.local.contextSize).toBeUndefined()
})

test.each([
  ['10m', undefined, 600_000],
  [1_500, undefined, 1_500],
  ['forever', '1m', 'forever'],
  [undefined, '90', 90_000],
  [undefined, '1h30m', 5_400_000],
  [undefined, '0', 0],
  [undefined, '-1', 'forever'],
  [undefined, '-1m', 'forever'],
] as const)('models stay loaded for %s, or %s in the environment: %s', (keepAlive, variable, expected) => {
  const { local } = resolveOptions({ local: { keepAlive } }, { OLLAMA_KEEP_ALIVE: variable })

  expect(local.keepAlive).toBe(expected)
})

test.each([[-1], ['5 minutes'], ['5'], [Number.NaN]])('%s is no time to stay loaded', (keepAlive) => {
  expect(() => resolveOptions({ local: { keepAlive } } as LlmOptions, {})).toThrow(TypeError)
})

test('an environment variable that is no time to stay loaded is a mistake', () => {
  expect(() => resolveOptions({}, { OLLAMA_KEEP_ALIVE: 'long' })).toThrow(
    new TypeError("Expected $OLLAMA_KEEP_ALIVE to be a duration such as 5m, got 'long'"),
  )
})

test('several paths are kept in their order', () => {
  const resolved = resolveOptions({ models: ['/b', '/a/model.gguf'] }, {})

  expect(resolved.models).toEqual(['/b', '/a/model.gguf'])
})

test('no paths at all leave only the built-in model', () => {
  const resolved = resolveOptions({ models: [] }, { OLLAMA_MODELS: '/srv/models' })

  expect(resolved.models).toEqual([])
})

test('a tilde in front is the home folder', () => {
  const resolved = resolveOptions({ models: ['~', '~/models', '~other/models', '/a/~/b'] }, {})

  expect(resolved.models).toEqual([homedir(), join(homedir(), 'models'), '~other/models', '/a/~/b'])
})

test('a tilde in $OLLAMA_MODELS is the home folder, too', () => {
  const resolved = resolveOptions({}, { OLLAMA_MODELS: '~/llms' })

  expect(resolved.models).toEqual([join(homedir(), 'llms')])
})

test('the smallest thread count and context size are taken', () => {
  const resolved = resolveOptions({ local: { threads: 1, contextSize: 16 } }, {})

  expect(resolved.local.threads).toBe(1)
  expect(resolved.local.contextSize).toBe(16)
})

test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('%d threads are refused by name', (threads) => {
  expect(() => resolveOptions({ local: { threads } }, {})).toThrow(
    new TypeError(
      `Expected \`local.threads\` to be a whole number from 1 to ${availableParallelism()}, got ${threads} (number)`,
    ),
  )
})

test.each([0, 15, -4_096, 512.5, Number.NaN])('a context of %d tokens is refused by name', (contextSize) => {
  expect(() => resolveOptions({ local: { contextSize } }, {})).toThrow(
    new TypeError(
      `Expected \`local.contextSize\` to be a whole number from 16 to 1073741824, got ${contextSize} (number)`,
    ),
  )
})

test('a number that is a string is refused with its type', () => {
  const threads = '4' as unknown as number

  expect(() => resolveOptions({ local: { threads } }, {})).toThrow('got 4 (string)')
})

test('a context size from the environment is held to the same limit', () => {
  expect(() => resolveOptions({}, { OLLAMA_CONTEXT_LENGTH: '8' })).toThrow(TypeError)
})

test('an engine and a model process of your own are handed on', () => {
  const engine = scriptedEngine('Hi.')

  const resolved = resolveOptions({ engine, local: { modelProcess: '/app/process.js' } }, {})

  expect(resolved.engine).toBe(engine)
  expect(resolved.local.modelProcess).toBe('/app/process.js')
})

test.each([
  [{ model: '/models' }, 'Unknown option `model`, expected one of: models,'],
  [{ contextSize: 2048 }, 'Unknown option `contextSize`'],
  [{ local: { context: 2048 } }, 'Unknown option `local.context`, expected one of: local.threads,'],
  [{ models: 5 }, 'Expected `models`'],
  [{ models: '' }, 'Expected `models`'],
  [{ engine: {} }, 'Expected `engine` to have the method generate()'],
  [{ engine: 'scripted' }, 'Expected `engine` to have the method generate()'],
  [{ logger: true }, 'Expected `logger` to have the method warn()'],
])('%j is a mistake in the set-up', (options, message) => {
  const resolving = () => resolveOptions(options as LlmOptions, {})

  expect(resolving).toThrow(TypeError)
  expect(resolving).toThrow(message)
})
