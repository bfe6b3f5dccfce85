/** Installs all packed packages with each package manager in an empty folder, without any script, and asks the model. */
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { environment, nodeOf, pack, root, run } from './npm.ts'

// `run()` ends its command after 120 s.
vi.setConfig({ testTimeout: 250_000, hookTimeout: 250_000 })

const manifestOf = async (path: string) =>
  JSON.parse(await readFile(join(root, path, 'package.json'), 'utf8'))
const { overrides: builds } = await manifestOf('.')

/** Frameworks of the adapters that run on Node 20, and the packages that an app with the local engine and SQLite installs itself. */
const others = {
  '@koa/router': '15',
  '@nestjs/common': '11',
  '@nestjs/core': '11',
  '@nestjs/platform-express': '11',
  '@photostructure/sqlite': '1',
  express: '5',
  fastify: '5',
  koa: '3',
  'node-llama-cpp': '3.22.1',
  'reflect-metadata': '0.2',
  rxjs: '7',
}

interface Manager {
  readonly name: string
  /** The npm package with the manager, and its command. */
  readonly command: readonly string[]
  readonly install: readonly string[]
  /** The field of the manifest that replaces versions of dependencies. */
  readonly replace: (versions: object) => object
  /** Configuration file, if the manager needs one. */
  readonly config?: readonly [file: string, text: string]
}

const managers: readonly Manager[] = [
  {
    name: 'npm',
    command: ['npm'],
    install: ['install', '--ignore-scripts'],
    replace: (overrides) => ({ overrides }),
  },
  {
    name: 'pnpm',
    command: ['npx', '-y', 'pnpm@10'],
    install: ['install', '--ignore-scripts', '--no-frozen-lockfile'],
    replace: (overrides) => ({ pnpm: { overrides } }),
  },
  {
    name: 'Yarn 1',
    command: ['npx', '-y', 'yarn@1'],
    // Yarn 1 fails for dependencies of Fastify that name a newer Node, where the other managers warn.
    install: ['install', '--ignore-scripts', '--ignore-engines', '--non-interactive'],
    replace: (resolutions) => ({ resolutions }),
  },
  {
    name: 'Yarn 4',
    command: ['npx', '-y', '-p', '@yarnpkg/cli-dist@4', 'yarn'],
    install: ['install', '--no-immutable'],
    replace: (resolutions) => ({ resolutions }),
    config: ['.yarnrc.yml', 'nodeLinker: node-modules\nenableScripts: false\nenableTelemetry: false\n'],
  },
]

let folder: string
/** Names of the packages, and their tarballs. */
let tarballs: Readonly<Record<string, string>>
let node: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'managers-'))
  const names = await readdir(join(root, 'packages'))
  const files = await pack(names, folder)
  const manifests = await Promise.all(names.map((name) => manifestOf(join('packages', name))))
  tarballs = Object.fromEntries(manifests.map(({ name }, index) => [name, files[index] as string]))
  node = await nodeOf('22', folder)
})

afterAll(() => rm(folder, { recursive: true, force: true }))

describe.each(inject('isThorough') ? managers : managers.slice(1, 2))(
  '$name',
  ({ name, command, install, replace, config }) => {
    let project: string

    beforeAll(async () => {
      project = join(folder, name)
      await mkdir(project)
      const own = Object.fromEntries(
        await Promise.all(
          Object.entries(tarballs).map(async ([packageName, file]) => {
            await cp(file, join(project, basename(file)))
            return [packageName, `file:./${basename(file)}`] as const
          }),
        ),
      )
      // npm takes the tarballs also for dependencies of the packages. The other managers would ask the registry.
      const replaced = Object.fromEntries(
        Object.entries({ ...builds, ...(name === 'npm' ? {} : own) }).filter(
          ([, version]) => typeof version === 'string',
        ),
      )
      const manifest = { private: true, type: 'module', dependencies: { ...others, ...own } }
      await writeFile(join(project, 'package.json'), JSON.stringify({ ...manifest, ...replace(replaced) }))
      if (config) await writeFile(join(project, config[0]), config[1])
      const [program = '', ...words] = command
      await run(program, [...words, ...install], project)
      await cp(join(root, 'test/packaging/app'), project, { recursive: true })
    })

    test.each([
      ['the running Node', () => process.execPath],
      ['Node 22', () => node],
    ])('on %s, the built-in model answers on the three APIs, with keys in SQLite', async (_name, program) => {
      const { stdout, stderr } = await run(program(), ['smoke.mjs'], project, environment)

      const text = 'Hello! How can I help you?'
      expect(JSON.parse(stdout)).toMatchObject({ openai: text, anthropic: text, ollama: text })
      expect(JSON.parse(stdout)).toMatchObject({ refused: 'invalid_api_key', stored: 'smoke' })
      expect(stderr.replaceAll(/.*(?:ExperimentalWarning: SQLite|--trace-warnings).*\n/g, '')).toBe('')
    })

    test('every entry point of every package loads', async () => {
      const loaded = await Promise.all(
        Object.keys(tarballs).map(async (packageName) => {
          const { exports } = JSON.parse(
            await readFile(join(project, 'node_modules', packageName, 'package.json'), 'utf8'),
          ) as { exports: Record<string, unknown> }
          // The files of processes and threads, which start their work when they are loaded.
          const names = Object.keys(exports).filter(
            (path) => !/\.(?:json|gguf)$|-process$|-worker$/.test(path),
          )
          const code = names.map((path) => `await import('${packageName}${path.slice(1)}')`).join('\n')
          await run(process.execPath, ['--input-type=module', '--eval', code], project)
          return names.length
        }),
      )

      expect(Math.min(...loaded.filter((count) => count > 0))).toBe(1)
      expect(loaded.reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(25)
    })
  },
)
