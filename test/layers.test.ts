import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

/**
 * The import rules of core: the table of ARCHITECTURE.md. The key is a folder or file. Besides its own files,
 * it may import the entries of `values`, and those of `types` by `import type` only.
 */
const layers: Record<string, { readonly values?: readonly string[]; readonly types?: readonly string[] }> = {
  errors: {},
  units: {},
  util: {},
  accounts: {
    values: ['errors', 'http', 'limits', 'models', 'storage', 'units', 'util'],
    types: ['engine'],
  },
  batches: {
    values: ['accounts', 'errors', 'http', 'limits', 'storage'],
    types: ['calls'],
  },
  database: {
    values: [
      'accounts',
      'batches',
      'engine/fleet',
      'limits',
      'response-store',
      'running-calls',
      'storage',
      'util',
    ],
  },
  'response-store': { values: ['limits', 'storage'], types: ['accounts'] },
  engine: { values: ['errors'], types: ['models'] },
  'engine/index': { values: ['errors', 'engine'] },
  http: { values: ['errors', 'options/check', 'options/timeout', 'units'], types: ['accounts'] },
  template: { values: ['engine', 'template/go-template', 'util'], types: ['grammar'] },
  'template/go-template': { values: ['engine'], types: ['template'] },
  grammar: { values: ['errors', 'util'] },
  models: { values: ['errors', 'http', 'engine', 'template/go-template', 'util'] },
  storage: { values: ['errors', 'util'] },
  limits: { values: ['errors', 'options/check', 'units', 'storage', 'util'] },
  logger: { types: ['errors'] },
  'options/check': {},
  'options/node-version': { values: ['errors'] },
  'options/timeout': { values: ['options/check', 'units'] },
  options: {
    values: ['options/check', 'options/timeout', 'units', 'limits', 'accounts', 'models', 'util'],
    types: ['accounts', 'calls', 'engine', 'logger', 'storage'],
  },
  'engine/local': {
    values: [
      'errors',
      'engine',
      'engine/wire',
      'engine/local/ipc',
      'engine/local/supervisor',
      'models',
      'util',
    ],
  },
  'engine/wire': { values: ['errors', 'engine'], types: ['models'] },
  'engine/local/ipc': { values: ['errors', 'engine', 'engine/wire', 'util'] },
  'engine/local/supervisor': {
    values: ['errors', 'engine', 'engine/wire', 'engine/local', 'engine/local/ipc', 'util'],
    types: ['models'],
  },
  'engine/local/model-process': {
    values: [
      'errors',
      'template',
      'template/go-template',
      'grammar',
      'engine',
      'engine/wire',
      'engine/local/ipc',
      'util',
    ],
  },
  'engine/upstream': {
    values: ['errors', 'engine', 'engine/wire', 'options/check', 'util'],
    types: ['models'],
  },
  'engine/fleet': {
    values: ['errors', 'engine', 'engine/upstream', 'engine/wire', 'options/check', 'storage', 'util'],
    types: ['models'],
  },
  machine: {
    values: ['engine/local/ipc', 'engine/local/supervisor', 'models', 'options'],
  },
  diagnostics: {
    values: ['logger'],
    types: ['accounts', 'batches', 'calls', 'engine', 'engine/local', 'errors'],
  },
  'running-calls': { values: ['diagnostics', 'errors', 'limits', 'storage'] },
  tracing: { values: ['diagnostics', 'util'], types: ['engine', 'errors', 'llm'] },
  calls: {
    values: ['diagnostics', 'errors', 'engine', 'accounts', 'limits', 'models', 'util'],
    types: ['batches', 'logger', 'response-store'],
  },
  metrics: { values: ['diagnostics', 'llm', 'util'], types: ['engine'] },
  health: { values: ['errors', 'util'], types: ['engine', 'limits', 'models', 'storage'] },
  llm: {
    types: [
      'accounts',
      'batches',
      'calls',
      'diagnostics',
      'engine',
      'errors',
      'health',
      'http',
      'limits',
      'options',
      'running-calls',
    ],
  },
  'create-llm': {
    values: [
      'accounts',
      'batches',
      'calls',
      'diagnostics',
      'dialects',
      'engine',
      'engine/local',
      'errors',
      'health',
      'http',
      'llm',
      'logger',
      'models',
      'options',
      'options/node-version',
      'response-store',
      'running-calls',
      'storage',
    ],
    types: ['limits'],
  },
  'dialects/adapter': {
    values: ['dialects', 'dialects/mount', 'errors', 'limits', 'llm', 'options', 'units', 'util'],
    types: ['accounts'],
  },
  dialects: {
    values: [
      'diagnostics',
      'errors',
      'units',
      'http',
      'engine',
      'engine/wire',
      'accounts',
      'limits',
      'llm',
      'metrics',
      'models',
      'options/check',
      'running-calls',
      'util',
    ],
    types: ['batches', 'calls', 'health', 'response-store'],
  },
  testing: { values: ['errors', 'options', 'options/check', 'engine', 'util'], types: ['models'] },
  'dialects/mount': {
    values: ['dialects', 'http', 'llm', 'options', 'options/check', 'units'],
    types: ['accounts'],
  },
  index: {
    values: ['calls', 'create-llm', 'dialects', 'engine', 'errors', 'logger', 'options'],
    types: ['accounts', 'batches', 'health', 'llm', 'storage', 'units'],
  },
}

/** npm packages, and the only folders of core that may import each of them. */
const homes: Record<string, readonly string[]> = {
  'node-llama-cpp': ['engine/local/model-process'],
  koffi: ['engine/local/model-process'],
  '@modelmount/tiny-model': ['models'],
  '@huggingface/jinja': ['template'],
  'eventsource-parser': ['engine/upstream', 'testing'],
  '@eslint-community/regexpp': ['grammar'],
  'path-to-regexp': ['http'],
  'lru-cache': [
    'accounts',
    'engine/fleet',
    'engine/local/model-process',
    'engine/local/supervisor',
    'models',
    'response-store',
    'storage',
  ],
  '@valibot/to-json-schema': ['calls'],
  zod: ['calls', 'dialects', 'engine/local/ipc', 'engine/wire', 'accounts', 'models', 'testing'],
  undici: ['engine/upstream', 'models'],
  nanoid: ['batches', 'calls', 'dialects'],
  '@streamparser/json': ['batches', 'calls'],
  busboy: ['dialects'],
  pg: ['storage'],
  '@opentelemetry/api': ['tracing'],
  'prom-client': ['dialects', 'metrics'],
  '@photostructure/sqlite': ['storage'],
}

const root = fileURLToPath(new URL('..', import.meta.url))
const core = join(root, 'packages/core/src')

describe('import rules of core', () => {
  for (const file of sources(core)) {
    const path = relative(core, file)

    test(`${path} imports only what the rules of its folder allow`, () => {
      const layer = layerOf(path)
      const { values = [], types = [] } = layers[layer] ?? {}

      for (const { specifier, typesOnly } of importsOf(file)) {
        if (specifier.startsWith('.')) {
          const target = layerOf(relative(core, normalize(join(dirname(file), specifier))))
          expect([layer, ...values, ...(typesOnly ? types : [])], specifier).toContain(target)
        } else {
          expect(homes[specifier] ?? [layer], specifier).toContain(layer)
          if (specifier.startsWith('@')) expect(Object.keys(homes)).toContain(specifier)
        }
      }
    })
  }

  test('no dialect imports another dialect', () => {
    for (const file of sources(join(core, 'dialects'))) {
      const [own, inFolder] = relative(join(core, 'dialects'), file).split(sep)
      if (inFolder === undefined) continue

      for (const { specifier } of importsOf(file)) {
        const target = relative(join(core, 'dialects'), normalize(join(dirname(file), specifier))).split(sep)
        const elsewhere = !specifier.startsWith('.') || target[0] === '..' || target.length === 1
        expect(elsewhere || target[0] === own, `${file}: ${specifier}`).toBe(true)
      }
    }
  })

  test('only library.ts loads node-llama-cpp, and only addon.ts uses its private members', () => {
    const loading = sources(core).filter((file) =>
      importsOf(file).some(({ specifier, typesOnly }) => specifier === 'node-llama-cpp' && !typesOnly),
    )
    const touching = sources(join(core, 'engine/local')).filter((file) =>
      /\b_[a-z]/.test(readFileSync(file, 'utf8')),
    )

    expect(loading.map((file) => relative(core, file))).toEqual([
      'engine/local/model-process/llama/library.ts',
    ])
    expect(touching.map((file) => relative(core, file))).toEqual([
      'engine/local/model-process/llama/addon.ts',
    ])
  })
})

test.each([
  ['ai-sdk', ['', '/engine'], ['@ai-sdk/provider']],
  ['express', ['', '/adapter', '/http', '/limits'], ['express']],
  ['fastify', ['', '/adapter', '/http', '/limits'], ['fastify']],
  ['koa', ['', '/adapter', '/http', '/limits'], ['@koa/router', 'koa']],
  ['nest', ['', '/adapter', '/operations', '/http', '/limits'], ['@nestjs/common', '@nestjs/core']],
  [
    'cli',
    [
      '',
      '/database',
      '/fleet',
      '/http',
      '/limits',
      '/metrics',
      '/machine',
      '/models',
      '/operations',
      '/upstream',
    ],
    [
      ...['@modelmount/console', '@modelmount/console/express', '@modelmount/express'],
      ...['express', 'commander', 'prom-client'],
    ],
  ],
  [
    'console',
    ['', '/adapter', '/http', '/limits'],
    [
      ...['express', 'fastify', 'koa', 'nest'].map((name) => `@modelmount/${name}`),
      ...['cookie', 'express', 'fastify', '@koa/router', '@nestjs/common'],
    ],
  ],
])('the package %s imports core only through its entry points', (name, entryPoints, packages) => {
  const allowed = [...entryPoints.map((entryPoint) => `@modelmount/core${entryPoint}`), ...packages]
  for (const file of sources(join(root, 'packages', name, 'src'))) {
    for (const { specifier } of importsOf(file)) {
      if (!/^(\.{1,2}\/|node:)/.test(specifier)) expect(allowed, file).toContain(specifier)
    }
  }
})

const packageNames = ['core', 'ai-sdk', 'express', 'fastify', 'koa', 'nest', 'console', 'cli']

describe.each(packageNames)('the package %s', (name) => {
  const src = join(root, 'packages', name, 'src')
  const files = sources(src)

  test('has no import cycle between files, types included', () => {
    const imports = new Map(
      files.map((file) => [
        file,
        importsOf(file)
          .filter(({ specifier }) => specifier.startsWith('.'))
          .map(({ specifier }) => normalize(join(dirname(file), specifier))),
      ]),
    )
    // Repeatedly removes files without imports among the remaining files. Only cycles and their importers
    // remain.
    for (let before = -1; imports.size !== before; ) {
      before = imports.size
      for (const [file, targets] of imports)
        if (!targets.some((target) => imports.has(target))) imports.delete(file)
    }

    expect([...imports.keys()].map((file) => relative(src, file))).toEqual([])
  })

  test('declares each type name once', () => {
    const declarations = new Map<string, string[]>()
    for (const file of files)
      for (const [, type = ''] of readFileSync(file, 'utf8').matchAll(
        /^(?:export )?(?:declare )?(?:abstract )?(?:type|interface|class|enum) (\w+)/gm,
      ))
        declarations.set(type, [...(declarations.get(type) ?? []), relative(src, file)])

    expect([...declarations].filter(([, places]) => places.length > 1)).toEqual([])
  })

  test('has at most 20 files in a folder', () => {
    const counts = new Map<string, number>()
    for (const file of files) counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1)

    expect([...counts].filter(([, count]) => count > 20)).toEqual([])
  })
})

function sources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
    .map((path) => join(folder, path))
}

function importsOf(file: string): { specifier: string; typesOnly: boolean }[] {
  const text = readFileSync(file, 'utf8')
  const statements = text.matchAll(/^(?:import|export) (type )?[^'"`]*?from '([^']+)'|^import '([^']+)'/gm)
  const dynamic = text.matchAll(/(typeof )?import\('([^']+)'\)/g)
  return [...statements, ...dynamic].map(([, types, from, bare]) => ({
    specifier: (from ?? bare) as string,
    typesOnly: types !== undefined,
  }))
}

/** The entry of the table with the longest matching path. */
function layerOf(path: string): string {
  const bare = path.replaceAll('\\', '/').replace(/\.ts$/, '')
  const fits = Object.keys(layers).filter((layer) => bare === layer || bare.startsWith(`${layer}/`))
  const layer = fits.sort((a, b) => b.length - a.length)[0]
  if (!layer) throw new Error(`No import rule for ${path}`)
  return layer
}
