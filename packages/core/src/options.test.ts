import { availableParallelism, homedir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type LlmOptions, resolveOptions } from './options.ts'
import { scriptedEngine } from './testing/scripted-engine.ts'

test('without options and environment, models are where Ollama keeps them, and the engine decides the rest', () => {
  const resolved = resolveOptions({}, {})

  expect(resolved).toEqual({
    models: [join(homedir(), '.ollama', 'models')],
    store: {
      registries: {
        hosts: ['registry.ollama.ai', 'hf.co', 'huggingface.co'],
        privateHosts: [],
        keyFile: join(homedir(), '.ollama', 'id_ed25519'),
      },
      maxBytes: Number.POSITIVE_INFINITY,
      prune: true,
    },
    local: {
      threads: undefined,
      contextSize: undefined,
      maxLoadedModels: 3,
      gpuLayers: 'auto',
      kvCacheType: 'f16',
      keepAlive: 300_000,
      modelProcessPath: join(import.meta.dirname, 'engine/local/model-process/main.js'),
    },
    engine: undefined,
    access: { auth: undefined, origins: undefined, scopes: undefined },
    database: undefined,
    metering: {
      prices: {},
      tiers: {},
      modelLimits: {},
      queue: undefined,
      warnings: {},
      retentionMs: 7_776_000_000,
    },
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
      `Expected \`local.contextSize\` to be a whole number from 16 to 16777216, got ${contextSize} (number)`,
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

test('the variables of Ollama say how models are loaded', () => {
  const { local } = resolveOptions(
    {},
    {
      OLLAMA_NUM_PARALLEL: '2',
      OLLAMA_MAX_LOADED_MODELS: '5',
      OLLAMA_FLASH_ATTENTION: '1',
      OLLAMA_KV_CACHE_TYPE: 'q8_0',
    },
  )

  expect(local).toMatchObject({ parallel: 2, maxLoadedModels: 5, flashAttention: true, kvCacheType: 'q8_0' })
})

test('options win over the variables of Ollama, whatever these say', () => {
  const { local } = resolveOptions(
    { local: { maxLoadedModels: 1, flashAttention: true, kvCacheType: 'q4_0', gpuLayers: 12 } },
    { OLLAMA_MAX_LOADED_MODELS: 'many', OLLAMA_FLASH_ATTENTION: '0', OLLAMA_KV_CACHE_TYPE: 'f16' },
  )

  expect(local).toMatchObject({
    maxLoadedModels: 1,
    flashAttention: true,
    kvCacheType: 'q4_0',
    gpuLayers: 12,
  })
})

test.each([['0'], [''], ['  '], [undefined]])('%j models are as many as Ollama has in memory', (variable) => {
  const { local } = resolveOptions({}, { OLLAMA_MAX_LOADED_MODELS: variable })

  expect(local.maxLoadedModels).toBe(3)
})

test.each([
  ...['1', 't', 'T', 'TRUE', 'true', 'True', ' 1 ', '"true"'].map((variable) => [variable, true] as const),
  ...['0', 'f', 'F', 'FALSE', 'false', 'False', "'0'"].map((variable) => [variable, false] as const),
  ['', undefined] as const,
])('OLLAMA_FLASH_ATTENTION=%s is %s', (variable, expected) => {
  const { local } = resolveOptions({}, { OLLAMA_FLASH_ATTENTION: variable })

  expect(local.flashAttention).toBe(expected)
})

test.each([
  ['q8_0', 'q8_0'],
  ['Q8_0', 'q8_0'],
  [' "Q4_0" ', 'q4_0'],
  ['F16', 'f16'],
  ['', 'f16'],
])('OLLAMA_KV_CACHE_TYPE=%s is %s', (variable, expected) => {
  const { local } = resolveOptions({}, { OLLAMA_KV_CACHE_TYPE: variable })

  expect(local.kvCacheType).toBe(expected)
})

test.each([
  ['OLLAMA_FLASH_ATTENTION', 'yes'],
  ['OLLAMA_FLASH_ATTENTION', 'tRuE'],
  ['OLLAMA_FLASH_ATTENTION', '2'],
  ['OLLAMA_KV_CACHE_TYPE', 'q8'],
  ['OLLAMA_KV_CACHE_TYPE', 'q5_1'],
  ['OLLAMA_KV_CACHE_TYPE', 'i32'],
  ['OLLAMA_MAX_LOADED_MODELS', '-1'],
  ['OLLAMA_MAX_LOADED_MODELS', 'three'],
  ['OLLAMA_MAX_LOADED_MODELS', '1e12'],
  ['OLLAMA_NUM_PARALLEL', '257'],
  ['OLLAMA_CONTEXT_LENGTH', '1073741824'],
])('%s=%s is a mistake that names the variable', (name, value) => {
  const resolving = () => resolveOptions({}, { [name]: value })

  expect(resolving).toThrow(TypeError)
  expect(resolving).toThrow(`Expected \`$${name}\` to be `)
})

test('a quantized cache without flash attention is a mistake, however it came to it', () => {
  const expected = 'Expected flash attention for the KV cache type q8_0'

  expect(() => resolveOptions({ local: { kvCacheType: 'q8_0', flashAttention: false } }, {})).toThrow(
    expected,
  )
  expect(() => resolveOptions({}, { OLLAMA_KV_CACHE_TYPE: 'q8_0', OLLAMA_FLASH_ATTENTION: 'false' })).toThrow(
    expected,
  )
})

const absurd = [Number.NaN, 1e12, -1, 0.5, Number.POSITIVE_INFINITY, '4', null, true, {}, []]

test.each<[option: string, value: unknown]>([
  ...['threads', 'contextSize', 'maxContextSize', 'parallel', 'maxLoadedModels', 'gpuLayers'].flatMap(
    (option) => absurd.map((value): [string, unknown] => [option, value]),
  ),
  ['contextSize', 2 ** 30],
  ['maxContextSize', 15],
  ['parallel', 0],
  ['parallel', 257],
  ['maxLoadedModels', 0],
  ['gpuLayers', 'all'],
  ['gpuLayers', 'Max'],
  ['flashAttention', 'on'],
  ['flashAttention', 1],
  ['flashAttention', null],
  ['kvCacheType', 'Q8_0'],
  ['kvCacheType', 'I32'],
  ['kvCacheType', 8],
  ['kvCacheType', null],
])('a %s of %j is refused by name', (option, value) => {
  const resolving = () => resolveOptions({ local: { [option]: value } } as LlmOptions, {})

  expect(resolving).toThrow(TypeError)
  expect(resolving).toThrow(`Expected \`local.${option}\` to be `)
})

test('an engine and a model process of your own are handed on', () => {
  const engine = scriptedEngine('Hi.')

  const resolved = resolveOptions({ engine, local: { modelProcessPath: '/app/process.js' } }, {})

  expect(resolved.engine).toBe(engine)
  expect(resolved.local.modelProcessPath).toBe('/app/process.js')
})

test.each([
  [{ model: '/models' }, 'Unknown option `model`, expected one of: models,'],
  [{ contextSize: 2048 }, 'Unknown option `contextSize`'],
  [{ local: { context: 2048 } }, 'Unknown option `local.context`, expected one of: local.threads,'],
  [{ models: 5 }, 'Expected `models`'],
  [{ models: '' }, 'Expected `models`'],
  [{ models: [{ name: 'mine', file: '/m.gguf' }] }, 'Expected `models`'],
  [{ models: [{ name: 'mine', file: '/m.gguf', adapters: ['/a.gguf'] }] }, 'Expected `models`'],
  [
    { models: [{ name: 'mine', file: '/m.gguf', adapters: [{ file: '/a.gguf', scale: Number.NaN }] }] },
    'Expected `models`',
  ],
  [{ models: [{ name: 'mine', path: '/m.gguf', adapters: [] }] }, 'Unknown option `models[].path`'],
  [
    {
      models: [
        {
          name: 'mine',
          file: '/m.gguf',
          adapters: [{ file: '/a.gguf' }, { file: '/b/../a.gguf', scale: 2 }],
        },
      ],
    },
    'the adapters of the model "mine" to be different files, but /a.gguf is named twice',
  ],
  [{ engine: {} }, 'Expected `engine` to have the method generate()'],
  [{ engine: 'scripted' }, 'Expected `engine` to have the method generate()'],
  [{ logger: true }, 'Expected `logger` to have the method warn()'],
])('%j is a mistake in the set-up', (options, message) => {
  const resolving = () => resolveOptions(options as LlmOptions, {})

  expect(resolving).toThrow(TypeError)
  expect(resolving).toThrow(message)
})

test('a model with adapters stands among paths, and ~ is home there, too', () => {
  const adapters = [{ file: '~/a.gguf', scale: 0.5 }]

  const { models } = resolveOptions({ models: ['/b', { name: 'mine', file: '~/m.gguf', adapters }] }, {})

  expect(models).toEqual([
    '/b',
    {
      name: 'mine',
      file: join(homedir(), 'm.gguf'),
      adapters: [{ file: join(homedir(), 'a.gguf'), scale: 0.5 }],
    },
  ])
})

test('registries and what the store may take are said in words of the field', () => {
  const { store } = resolveOptions(
    {
      store: {
        registries: [],
        privateRegistries: ['Registry.local:5000', '[::1]:80'],
        maxBytes: '2gb',
        prune: false,
      },
    },
    {},
  )

  expect(store).toMatchObject({
    registries: { hosts: [], privateHosts: ['registry.local:5000', '[::1]:80'] },
    maxBytes: 2 * 1024 ** 3,
    prune: false,
  })
})

test.each([
  [undefined, '1', false],
  [true, '1', true],
  [undefined, '0', true],
])('pruning %s, with $OLLAMA_NOPRUNE %s, is %s', (prune, variable, expected) => {
  expect(resolveOptions({ store: { prune } }, { OLLAMA_NOPRUNE: variable }).store.prune).toBe(expected)
})

test.each([
  [{ registries: 'hf.co' }, 'store.registries'],
  [{ registries: ['https://hf.co'] }, 'store.registries'],
  [{ privateRegistries: ['host/path'] }, 'store.privateRegistries'],
  [{ privateRegistries: [''] }, 'store.privateRegistries'],
  [{ maxBytes: 'much' }, 'byte size'],
  [{ prune: 'yes' }, 'store.prune'],
  [{ budget: 5 }, 'store.budget'],
])('the store %j is a mistake', (store, message) => {
  expect(() => resolveOptions({ store } as unknown as LlmOptions, {})).toThrow(message)
})

test('a database is named by the option; keys have one beside the models; nobody else has any', () => {
  const databaseOf = (options: LlmOptions) => resolveOptions(options, {}).database
  const pool = { query() {}, connect() {}, end() {} } as unknown as NonNullable<LlmOptions['database']>

  expect(databaseOf({})).toBeUndefined()
  expect(databaseOf({ database: ':memory:' })).toBe(':memory:')
  expect(databaseOf({ database: '~/data.db' })).toBe(join(homedir(), 'data.db'))
  expect(databaseOf({ database: 'postgres://localhost/db', auth: 'keys' })).toBe('postgres://localhost/db')
  expect(databaseOf({ database: pool })).toBe(pool)
  expect(databaseOf({ auth: 'keys', models: ['/one.gguf', '/models'] })).toBe(
    join('/models', 'modelmount.db'),
  )
  expect(() => databaseOf({ auth: 'keys', models: ['/one.gguf'] })).toThrow('Expected the option `database`')
  expect(() => databaseOf({ database: '' })).toThrow('Expected `database`')
  expect(() => databaseOf({ database: {} as never })).toThrow(
    'Expected `database` to have the method query()',
  )
})

test('calls are kept for 90 days, for as many as are said, or for ever', () => {
  const keepMs = (usage: LlmOptions['usage']) => resolveOptions({ usage }, {}).metering.retentionMs

  expect([
    keepMs(undefined),
    keepMs({}),
    keepMs({ retentionDays: 1 }),
    keepMs({ retentionDays: 'forever' }),
  ]).toEqual([...[7_776_000_000, 7_776_000_000, 86_400_000, Number.POSITIVE_INFINITY]])
  for (const retentionDays of [0, 1.5, -1, '90', Number.NaN])
    expect(() => keepMs({ retentionDays } as LlmOptions['usage'])).toThrow('`usage.retentionDays`')
  expect(() => keepMs({ days: 1 } as LlmOptions['usage'])).toThrow('`usage.days`')
})
