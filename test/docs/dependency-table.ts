/** The tables of `docs/reference/dependencies.md`: what each package of this repository needs, from the installed packages. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { root } from '../packaging/npm.ts'

export const pageFile = join(root, 'docs/reference/dependencies.md')

/** What each dependency is for. A dependency that is missing here fails the test. */
const purposes: Readonly<Record<string, string>> = {
  '@ai-sdk/provider': 'types and errors of the AI SDK',
  '@eslint-community/regexpp': 'parses the regular expressions of JSON schemas and tools',
  '@huggingface/jinja': 'renders chat templates',
  '@koa/router': 'routers of Koa',
  '@nestjs/common': 'NestJS',
  '@nestjs/core': 'NestJS',
  '@nestjs/platform-express': 'NestJS on Express',
  '@nestjs/platform-fastify': 'NestJS on Fastify',
  '@opentelemetry/api': 'traces',
  '@photostructure/sqlite': 'SQLite on Node before 22.13',
  '@streamparser/json': 'reads batches and tool calls piece by piece',
  '@valibot/to-json-schema': 'schemas of valibot in `llm.chat()`',
  busboy: 'reads uploaded files',
  commander: 'commands and flags',
  cookie: 'reads and writes the cookie of a session',
  'eventsource-parser': 'reads the streams of upstream servers',
  express: 'Express',
  fastify: 'Fastify',
  koa: 'Koa',
  koffi: 'embeddings and reranking of many texts at a time: calls llama.cpp directly',
  'lru-cache': 'bounded caches',
  nanoid: 'ids of calls, keys and batches',
  'node-llama-cpp': 'the local engine: llama.cpp for Node',
  'path-to-regexp': 'paths of the routes',
  pg: 'PostgreSQL',
  'prom-client': 'metrics for Prometheus',
  'reflect-metadata': 'decorators of NestJS',
  rxjs: 'streams of NestJS',
  undici: 'connections to upstream servers and registries',
  zod: 'checks requests. The published package contains what it uses, and does not install zod',
}

/** Licences that need no more than their text beside the code. */
const permissive = ['0BSD', 'Apache-2.0', 'BlueOak-1.0.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT']

/** Whether a licence, such as `(BSD-2-Clause OR MIT)`, is permissive in one of its choices. */
export const isPermissive = (licence: string): boolean =>
  licence
    .replaceAll(/[()]/g, '')
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every((name) => permissive.includes(name)))

/** An installed package. */
export interface Dependency {
  readonly name: string
  readonly version: string
  readonly licence: string
  /** Files of the package alone, in bytes. */
  readonly bytes: number
  /** It and everything that it needs. Without optional dependencies, such as the engine builds of platforms. */
  readonly closure: ReadonlyMap<string, Dependency>
}

interface Manifest {
  readonly name: string
  readonly version: string
  readonly license?: string
  readonly licenses?: readonly { readonly type: string }[]
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
}

const readManifest = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))

/** The folder of a dependency, as Node finds it from the folder of a package. */
function findFolder(from: string, name: string): string {
  for (let folder = from; folder !== dirname(folder); folder = dirname(folder))
    if (existsSync(join(folder, 'node_modules', name, 'package.json')))
      return join(folder, 'node_modules', name)
  throw new Error(`${name} is not installed.`)
}

function bytesOf(folder: string): number {
  return readdirSync(folder, { withFileTypes: true }).reduce((sum, entry) => {
    if (entry.name === 'node_modules') return sum
    const path = join(folder, entry.name)
    return sum + (entry.isDirectory() ? bytesOf(path) : entry.isFile() ? statSync(path).size : 0)
  }, 0)
}

export function readDependency(
  from: string,
  name: string,
  closure = new Map<string, Dependency>(),
): Dependency {
  const folder = findFolder(from, name)
  const { version, license, licenses, dependencies = {} } = readManifest(folder)
  const licence = license ?? licenses?.[0]?.type ?? 'none'
  const dependency = { name, version, licence, bytes: bytesOf(folder), closure }
  closure.set(folder, dependency)
  for (const needed of Object.keys(dependencies))
    if (!closure.has(findFolder(folder, needed))) readDependency(folder, needed, closure)
  return dependency
}

export interface PackageTable {
  readonly name: string
  readonly rows: readonly { readonly kind: string; readonly dependency: Dependency }[]
}

/** The dependencies of each package of this repository on other packages. */
export const tables: readonly PackageTable[] = readdirSync(join(root, 'packages')).map((folder) => {
  const path = join(root, 'packages', folder)
  const { name, dependencies = {}, peerDependencies = {}, peerDependenciesMeta = {} } = readManifest(path)
  const rows = [
    ...Object.keys(dependencies).map((needed) => [needed, 'always'] as const),
    ...Object.keys(peerDependencies).map(
      (needed) => [needed, peerDependenciesMeta[needed]?.optional ? 'optional peer' : 'peer'] as const,
    ),
  ]
  return {
    name,
    rows: rows
      .filter(([needed]) => !needed.startsWith('@modelmount/'))
      .map(([needed, kind]) => ({ kind, dependency: readDependency(path, needed) })),
  }
})

/** In MB of files, since sizes on disk depend on the file system. */
const size = (bytes: number): string => (bytes < 50_000 ? '< 0.1' : (bytes / 1e6).toFixed(1))

function describe({ kind, dependency }: PackageTable['rows'][number]): string {
  const { name, licence, bytes, closure } = dependency
  const purpose = purposes[name]
  if (purpose === undefined) throw new Error(`Say in test/docs/dependency-table.ts what ${name} is for.`)
  const all = [...closure.values()]
  const total = all.reduce((sum, { bytes: own }) => sum + own, 0)
  const further = all.length === 1 ? '' : `${size(total)} with ${all.length - 1} more`
  return `| \`${name}\` | ${kind} | ${purpose} | ${size(bytes)} | ${further} | ${licence} |`
}

/** The page with new tables between its two comments. */
export function renderPage(): string {
  const [before = '', after = ''] = readFileSync(pageFile, 'utf8').split(
    /(?<=<!-- tables -->\n)[\s\S]*(?=<!-- end of tables -->)/,
  )
  const sections = tables.map(({ name, rows }) =>
    rows.length === 0
      ? `### ${name}\n\nNone.\n`
      : [
          `### ${name}\n`,
          '| package | needed | for | MB | MB with dependencies | licence |',
          '| --- | --- | --- | ---: | ---: | --- |',
          ...rows.map(describe),
          '',
        ].join('\n'),
  )
  return `${before}\n${sections.join('\n')}\n${after}`
}
