import { availableParallelism, homedir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type LlmOptions, resolveOptions } from './options.ts'
import { scriptedEngine } from './testing/scripted-engine.ts'

test('without options and environment variables, all defaults apply', () => {
  const resolved = resolveOptions({}, {})

  expect(resolved).toEqual({
    models: [join(homedir(), '.ollama', 'models')],
    store: {
      registries: {
        credentials: { entries: {} },
        proxy: { https: undefined, http: undefined, none: undefined },
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
      parallel: 4,
      maxLoadedModels: 3,
      maxCalls: 1_560,
      maxPromptCharacters: 67_108_864,
      gpuLayers: 'auto',
      kvCacheType: 'f16',
      keepAlive: 300_000,
      environment: [],
      reloadCooldown: 5_000,
      modelProcessPath: expect.stringMatching(/dist.engine.local.model-process.main\.js$/),
    },
    engine: undefined,
    imageHosts: [],
    access: { auth: undefined, origins: undefined, scopes: undefined },
    database: undefined,
    metering: {
      prices: {},
      modelLimits: {},
      warnings: {},
      retentionMs: 7_776_000_000,
    },
    queue: { permits: 8, followsParallel: true, maxQueued: 512, timeoutMs: 300_000 },
    modelSettings: {},
    aliases: {},
    batches: {
      run: true,
      concurrency: 8,
      expiresAfterMs: 86_400_000,
      retentionMs: 2_505_600_000,
      fileRetentionMs: 2_592_000_000,
      maxBatchBytes: 256 * 1024 ** 2,
      maxItems: 100_000,
      maxQueuedItems: 100_000,
      maxBytes: 10 * 1024 ** 3,
      maxBytesPerTenant: 2.5 * 1024 ** 3,
      database: undefined,
    },
    responses: {
      store: 'memory',
      maxBytes: 256 * 1024 ** 2,
      maxBytesPerTenant: 64 * 1024 ** 2,
      maxAgeMs: 3_600_000,
    },
    bodies: { maxBytes: 1_073_741_824, maxBytesPerTenant: 268_435_456, stallTimeoutMs: 60_000 },
    outputBuffer: { tenantBytes: 16 * 1024 ** 2, totalBytes: 128 * 1024 ** 2, stallMs: 60_000 },
    interceptors: [],
    accessLog: false,
    logger: undefined,
  })
})

test('environment variables apply where no option is set', () => {
  const resolved = resolveOptions({}, { OLLAMA_MODELS: '/srv/models', OLLAMA_CONTEXT_LENGTH: '8192' })

  expect(resolved.models).toEqual(['/srv/models'])
  expect(resolved.local.contextSize).toBe(8_192)
})

test('an option takes precedence over its environment variable', () => {
  const resolved = resolveOptions(
    { models: '/mine', local: { contextSize: 512 } },
    { OLLAMA_MODELS: '/srv/models', OLLAMA_CONTEXT_LENGTH: '8192' },
  )

  expect(resolved.models).toEqual(['/mine'])
  expect(resolved.local.contextSize).toBe(512)
})

test('an undefined option counts as not set', () => {
  const resolved = resolveOptions(
    { models: undefined, local: { threads: undefined, contextSize: undefined }, engine: undefined },
    { OLLAMA_MODELS: '/srv/models', OLLAMA_CONTEXT_LENGTH: '8192' },
  )

  expect(resolved.models).toEqual(['/srv/models'])
  expect(resolved.local).toMatchObject({ threads: undefined, contextSize: 8_192, keepAlive: 300_000 })
})

test('an empty environment variable counts as not set', () => {
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
] as const)('keepAlive %s with $OLLAMA_KEEP_ALIVE=%s is %s', (keepAlive, variable, expected) => {
  const { local } = resolveOptions({ local: { keepAlive } }, { OLLAMA_KEEP_ALIVE: variable })

  expect(local.keepAlive).toBe(expected)
})

test.each([[-1], ['5 minutes'], ['5'], [Number.NaN]])('rejects keepAlive %s', (keepAlive) => {
  expect(() => resolveOptions({ local: { keepAlive } } as LlmOptions, {})).toThrow(TypeError)
})

test.each([
  ['10s', 10_000],
  [1_500, 1_500],
  [0, 0],
  ['1h', 3_600_000],
] as const)('reloadCooldown %s is %i ms', (reloadCooldown, expected) => {
  expect(resolveOptions({ local: { reloadCooldown } }, {}).local.reloadCooldown).toBe(expected)
})

test.each([[-1], ['5 seconds'], ['forever'], ['61m'], [Number.POSITIVE_INFINITY], [null]])(
  'rejects reloadCooldown %s',
  (reloadCooldown) => {
    expect(() => resolveOptions({ local: { reloadCooldown } } as unknown as LlmOptions, {})).toThrow(
      /^`local\.reloadCooldown`: Expected/,
    )
  },
)

test('rejects an invalid $OLLAMA_KEEP_ALIVE', () => {
  expect(() => resolveOptions({}, { OLLAMA_KEEP_ALIVE: 'long' })).toThrow(
    new TypeError("Expected $OLLAMA_KEEP_ALIVE to be a duration such as 5m, got 'long'"),
  )
})

test('several paths keep their order', () => {
  const resolved = resolveOptions({ models: ['/b', '/a/model.gguf'] }, {})

  expect(resolved.models).toEqual(['/b', '/a/model.gguf'])
})

test('an empty list of models ignores $OLLAMA_MODELS', () => {
  const resolved = resolveOptions({ models: [] }, { OLLAMA_MODELS: '/srv/models' })

  expect(resolved.models).toEqual([])
})

test('a leading tilde means the home folder', () => {
  const resolved = resolveOptions({ models: ['~', '~/models', '~other/models', '/a/~/b'] }, {})

  expect(resolved.models).toEqual([homedir(), join(homedir(), 'models'), '~other/models', '/a/~/b'])
})

test('a leading tilde in $OLLAMA_MODELS means the home folder', () => {
  const resolved = resolveOptions({}, { OLLAMA_MODELS: '~/llms' })

  expect(resolved.models).toEqual([join(homedir(), 'llms')])
})

test('accepts the smallest thread count and context size', () => {
  const resolved = resolveOptions({ local: { threads: 1, contextSize: 16 } }, {})

  expect(resolved.local.threads).toBe(1)
  expect(resolved.local.contextSize).toBe(16)
})

test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('rejects a thread count of %d', (threads) => {
  expect(() => resolveOptions({ local: { threads } }, {})).toThrow(
    new TypeError(
      `Expected \`local.threads\` to be a whole number from 1 to ${availableParallelism()}, got ${threads} (number)`,
    ),
  )
})

test.each([0, 15, -4_096, 512.5, Number.NaN])('rejects a context size of %d', (contextSize) => {
  expect(() => resolveOptions({ local: { contextSize } }, {})).toThrow(
    new TypeError(
      `Expected \`local.contextSize\` to be a whole number from 16 to 16777216, got ${contextSize} (number)`,
    ),
  )
})

test('rejects a number given as a string, naming its type', () => {
  const threads = '4' as unknown as number

  expect(() => resolveOptions({ local: { threads } }, {})).toThrow('got 4 (string)')
})

test('rejects a context size from the environment that is too small', () => {
  expect(() => resolveOptions({}, { OLLAMA_CONTEXT_LENGTH: '8' })).toThrow(TypeError)
})

test("Ollama's environment variables set the load options", () => {
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

test("options take precedence over Ollama's variables, even invalid ones", () => {
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

test.each([['0'], [''], ['  '], [undefined]])('$OLLAMA_MAX_LOADED_MODELS=%j is the default', (variable) => {
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
])('rejects %s=%s, naming the variable', (name, value) => {
  const resolving = () => resolveOptions({}, { [name]: value })

  expect(resolving).toThrow(TypeError)
  expect(resolving).toThrow(`Expected \`$${name}\` to be `)
})

test('rejects a quantized cache without flash attention, from options and from the environment', () => {
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
  ...[
    ...['threads', 'contextSize', 'maxContextSize', 'parallel', 'maxLoadedModels', 'gpuLayers'],
    ...['maxCalls', 'maxPromptCharacters'],
  ].flatMap((option) => absurd.map((value): [string, unknown] => [option, value])),
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
])('rejects a %s of %j, naming the option', (option, value) => {
  const resolving = () => resolveOptions({ local: { [option]: value } } as LlmOptions, {})

  expect(resolving).toThrow(TypeError)
  expect(resolving).toThrow(`Expected \`local.${option}\` to be `)
})

test('permits follow `parallel`, and the engine accepts all calls that a queue may admit', () => {
  const of = (options: LlmOptions, environment = {}) => {
    const { queue, local } = resolveOptions(options, environment)
    return [queue?.permits, local.maxCalls]
  }

  expect(of({ local: { parallel: 256 } })).toEqual([512, 3_072])
  expect(of({}, { OLLAMA_NUM_PARALLEL: '100' })).toEqual([200, 2_136])
  expect(of({ local: { parallel: 1, maxLoadedModels: 1 } })).toEqual([2, 514])
  expect(of({ maxQueued: 0 })).toEqual([8, 512])
  expect(of({ maxAdmitted: 1_000, local: { maxLoadedModels: 1 } })).toEqual([1_000, 1_512])
  expect(of({ maxAdmitted: 1_000, local: { maxCalls: 5 } })).toEqual([1_000, 5])
})

test('a model with a larger `parallel` admits more calls, unless `maxAdmitted` is set', () => {
  const modelSettings = { 'qwen*': { parallel: 256 } }
  const of = (options: LlmOptions) => {
    const { queue, local } = resolveOptions(options, {})
    return [queue?.permits, queue?.followsParallel, local.maxCalls]
  }

  expect(of({ modelSettings })).toEqual([8, true, 3_072])
  expect(of({ modelSettings, maxAdmitted: 8 })).toEqual([8, undefined, 1_560])
})

test('settings of models are resolved', () => {
  const { modelSettings } = resolveOptions(
    {
      modelSettings: {
        'llama3.2': { contextSize: 8_192, parallel: 2, gpuLayers: 'max', keepAlive: '10m' },
        'qwen*': { keepAlive: 'forever', maxTokens: 100, stop: ['.'], temperature: 0 },
        '*': {},
      },
    },
    {},
  )

  expect(modelSettings).toEqual({
    'llama3.2': { contextSize: 8_192, parallel: 2, gpuLayers: 'max', keepAlive: 600_000 },
    'qwen*': { keepAlive: 'forever', maxTokens: 100, stop: ['.'], sampling: { temperature: 0 } },
    '*': {},
  })
})

test.each([
  [[], 'Expected `modelSettings` to be an object, got []'],
  [{ tiny: 8 }, "Expected `modelSettings['tiny']` to be an object, got 8 (number)"],
  [{ '': {} }, "Expected `modelSettings` to have names of models, or patterns, got ''"],
  [{ tiny: { num_ctx: 8 } }, "Unknown option `modelSettings['tiny'].num_ctx`, expected one of: "],
  [
    { tiny: { contextSize: 8 } },
    "Expected `modelSettings['tiny'].contextSize` to be a whole number from 16 to 4096",
  ],
  [
    { tiny: { contextSize: 8_192 } },
    "Expected `modelSettings['tiny'].contextSize` to be a whole number from 16 to 4096",
  ],
  [
    { '*': { parallel: 0 } },
    "Expected `modelSettings['*'].parallel` to be a whole number from 1 to 256, got 0",
  ],
  [
    { '*': { gpuLayers: 'all' } },
    "Expected `modelSettings['*'].gpuLayers` to be 'auto', 'max' or a whole number",
  ],
  [{ '*': { keepAlive: 'soon' } }, "`modelSettings['*'].keepAlive`: "],
])('rejects the settings of models %j', (modelSettings, message) => {
  const options = { local: { maxContextSize: 4_096 }, modelSettings } as unknown as LlmOptions

  expect(() => resolveOptions(options, {})).toThrow(message)
})

test('calls of a custom engine queue if there are several callers or an option of the queue', () => {
  const engine = scriptedEngine('Hi.')
  const queueOf = (options: LlmOptions) => resolveOptions({ engine, ...options }, {}).queue

  expect(queueOf({})).toBeUndefined()
  expect(queueOf({ auth: 'host' })).toEqual({ permits: 64, maxQueued: 512, timeoutMs: 300_000 })
  expect(queueOf({ maxAdmitted: 2 })).toEqual({ permits: 2, maxQueued: 512, timeoutMs: 300_000 })
  expect(queueOf({ maxQueued: 0 })).toEqual({ permits: 64, maxQueued: 0, timeoutMs: 300_000 })
  expect(queueOf({ queueTimeout: '1s' })).toEqual({ permits: 64, maxQueued: 512, timeoutMs: 1_000 })
  expect(queueOf({ queueTimeout: 'forever' })?.timeoutMs).toBe(Number.POSITIVE_INFINITY)
})

test.each([
  [undefined, '7', 7],
  [undefined, '0', 0],
  [undefined, '', 512],
  [3, '7', 3],
  [3, 'many', 3],
])('maxQueued %s with $OLLAMA_MAX_QUEUE=%s is %s', (maxQueued, variable, expected) => {
  expect(resolveOptions({ maxQueued }, { OLLAMA_MAX_QUEUE: variable }).queue?.maxQueued).toBe(expected)
})

test('rejects an invalid $OLLAMA_MAX_QUEUE', () => {
  expect(() => resolveOptions({}, { OLLAMA_MAX_QUEUE: 'many' })).toThrow('$OLLAMA_MAX_QUEUE')
})

test('the memory for the bodies of a caller is a quarter of the whole, unless it is set', () => {
  const of = (bodies: LlmOptions['bodies']) => resolveOptions({ bodies }, {}).bodies

  expect(of({ maxBytes: '100mb' })).toMatchObject({ maxBytes: 104_857_600, maxBytesPerTenant: 26_214_400 })
  expect(of({ maxBytes: '1mb', maxBytesPerCaller: '512kb' })).toMatchObject({ maxBytesPerTenant: 524_288 })
  expect(of({ stallTimeout: '1m' })).toMatchObject({ stallTimeoutMs: 60_000 })
})

test('passes on a custom engine and model process path', () => {
  const engine = scriptedEngine('Hi.')

  const resolved = resolveOptions({ engine, local: { modelProcessPath: '/app/process.js' } }, {})

  expect(resolved.engine).toBe(engine)
  expect(resolved.local.modelProcessPath).toBe('/app/process.js')
})

test.each([
  [{ model: '/models' }, 'Unknown option `model`, expected one of: models,'],
  [{ contextSize: 2048 }, 'Unknown option `contextSize`'],
  [{ local: { context: 2048 } }, 'Unknown option `local.context`, expected one of: local.threads,'],
  [{ local: { environment: 'PATH' } }, 'Expected `local.environment` to be a list of names'],
  [{ local: { environment: ['A=B'] } }, 'Expected `local.environment` to be a list of names'],
  [{ local: { environment: ['NODE_OPTIONS'] } }, 'Expected `local.environment` without NODE_OPTIONS'],
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
  [{ maxAdmitted: 0 }, 'Expected `maxAdmitted` to be a whole number from 1 to 1000000, got 0 (number)'],
  [{ maxQueued: -1 }, 'Expected `maxQueued` to be a whole number from 0 to 1000000'],
  [{ queueTimeout: 0 }, 'Expected `queueTimeout` to be a duration from 1 ms to 24 days, got 0 (number)'],
  [{ queueTimeout: '900h' }, 'Expected `queueTimeout` to be a duration from 1 ms to 24 days, got 900h'],
  [{ queueTimeout: 'soon' }, "`queueTimeout`: Expected a duration such as '5m'"],
  [{ bodies: { max: 1 } }, 'Unknown option `bodies.max`, expected one of: bodies.maxBytes,'],
  [{ bodies: { maxBytes: '1kb' } }, 'Expected `bodies.maxBytes` to be from 1048576 to'],
  [{ bodies: { maxBytes: 'all' } }, "`bodies.maxBytes`: Expected a byte size such as '32mb'"],
  [
    { bodies: { maxBytesPerCaller: 1 } },
    'Expected `bodies.maxBytesPerCaller` to be from 262144 to 536870912',
  ],
  [
    { bodies: { maxBytes: '1mb', maxBytesPerCaller: '513kb' } },
    'Expected `bodies.maxBytesPerCaller` to be from 262144 to 524288 bytes, got 513kb (string)',
  ],
  [{ bodies: { stallTimeout: 0 } }, 'Expected `bodies.stallTimeout` to be a duration from 1 ms'],
])('rejects the options %j', (options, message) => {
  const resolving = () => resolveOptions(options as LlmOptions, {})

  expect(resolving).toThrow(TypeError)
  expect(resolving).toThrow(message)
})

test('a model with adapters may be among paths, and its own paths may begin with a tilde', () => {
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

test('resolves the registries and the size limit of the store', () => {
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
])('prune %s with $OLLAMA_NOPRUNE=%s is %s', (prune, variable, expected) => {
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
])('rejects the store options %j', (store, message) => {
  expect(() => resolveOptions({ store } as unknown as LlmOptions, {})).toThrow(message)
})

test('the database is that of the option, or a file in the folder of models for keys, or none', () => {
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

test('call rows are kept for 90 days by default, for the days of the option, or forever', () => {
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

test('in a CGI program, `HTTP_PROXY` is a header of the client and not read', () => {
  const proxyIn = (environment: NodeJS.ProcessEnv) =>
    resolveOptions({}, environment).store.registries.proxy.http
  const HTTP_PROXY = 'http://proxy.example:3128'

  expect(proxyIn({ HTTP_PROXY })).toBe(HTTP_PROXY)
  expect(proxyIn({ HTTP_PROXY, REQUEST_METHOD: 'GET' })).toBeUndefined()
  expect(proxyIn({ http_proxy: HTTP_PROXY, REQUEST_METHOD: 'GET' })).toBe(HTTP_PROXY)
})

test.each<[LlmOptions['responses'], string]>([
  [
    { store: 'disk' as never },
    "Expected `responses.store` to be 'memory', 'database' or false, got disk (string)",
  ],
  [{ store: 'database' }, "Expected the option `database`, which `responses.store: 'database'` needs"],
  [{ maxAge: 10 }, 'Expected `responses.maxAge` to be at least 1 s'],
  [{ maxAge: 'a' as never }, '`responses.maxAge`: Expected a duration'],
  [{ maxBytes: 'a' as never }, '`responses.maxBytes`: Expected a byte size'],
  [{ size: 1 } as never, 'Unknown option `responses.size`'],
])('the options %j for stored responses are rejected', (responses, message) => {
  expect(() => resolveOptions({ responses }, {})).toThrow(message)
})

test.each<[unknown]>([
  ['images.example.com'],
  [['https://images.example.com']],
  [['a/b']],
  [['*.example.com']],
  [[5]],
])('the image hosts %j are rejected', (imageHosts) => {
  expect(() => resolveOptions({ imageHosts } as LlmOptions, {})).toThrow(
    'Expected `imageHosts` to be a list of hosts such as ',
  )
})

test('image hosts are names in any case, with or without a port', () => {
  const { imageHosts } = resolveOptions({ imageHosts: ['Images.Example.com', 'cdn.example:8443'] }, {})

  expect(imageHosts).toEqual(['images.example.com', 'cdn.example:8443'])
})
