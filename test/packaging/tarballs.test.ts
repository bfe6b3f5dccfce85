/** Installs the packed packages in projects outside this workspace, and uses them there. */
import { cp, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { emptyProject, environment, nodeOf, pack, root, run } from './npm.ts'

const manifestOf = async (path: string) =>
  JSON.parse(await readFile(join(root, path, 'package.json'), 'utf8'))
const { overrides } = await manifestOf('.')
const { version } = await manifestOf('packages/cli')
const { peerDependencies } = await manifestOf('packages/express')

/**
 * Version ranges of Express that the adapter supports. The project of the last range also gets the local
 * engine.
 */
const expresses: readonly string[] = peerDependencies.express.split(/ *\|\| */)
/** The oldest supported version of Node, and the newest one of each major version. */
const nodes = ['20.19.0', ...(inject('isThorough') ? ['20', '22'] : []), '24']

// `run()` has a shorter limit of 120 s, and ends its command then.
vi.setConfig({ testTimeout: 130_000 })

/**
 * The oldest supported version of Nest, which is CommonJS, and the newest one, which consists of ES modules.
 */
const nests = ['11.2.0', '12']

const projects = new Map<string, string>()
const binaries = new Map<string, string>()
let folder: string
let project: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tarballs-'))
  const [core, express, tinyModel, cli, nest, console] = (await pack(
    ['core', 'express', 'tiny-model', 'cli', 'nest', 'console'],
    folder,
  )) as [string, string, string, string, string, string]
  const commandLine = [cli, console, 'node-llama-cpp@3.22.1', '@photostructure/sqlite@1']
  const install = async (key: string, name: string, manifest: object, packages: readonly string[]) => {
    const path = await emptyProject(join(folder, name), { type: 'module', ...manifest }, packages)
    await cp(join(root, 'test/packaging/app'), path, { recursive: true })
    projects.set(key, path)
  }
  // All installs run in parallel, because npm mostly waits for the registry and for files.
  await Promise.all([
    ...expresses.map((range, index) => {
      const last = range === expresses.at(-1)
      const types = [`@types/express@${/\d+/.exec(range)}`, '@types/node@20']
      const packages = [core, express, tinyModel, `express@${range}`, ...types, ...(last ? commandLine : [])]
      // `overrides` replaces the engine builds for other platforms than Linux with glibc by empty packages.
      return install(range, `express-${index}`, { overrides }, packages)
    }),
    ...nests.map((line) => {
      const ofNest = ['common', 'core', 'platform-express'].map((name) => `@nestjs/${name}@${line}`)
      const others = ['reflect-metadata', 'rxjs', '@types/node@20']
      return install(line, `nest-${line}`, {}, [core, nest, ...ofNest, ...others])
    }),
    ...nodes.map(async (line) => binaries.set(line, await nodeOf(line, folder))),
  ])
  project = projects.get(expresses.at(-1) as string) as string
  await cp(join(root, 'examples/express/app.js'), join(project, 'app.js'))
}, 180_000)

afterAll(() => rm(folder, { recursive: true, force: true }), 60_000)

describe.each(nodes)('packed packages on Node %s', (line) => {
  const node = (script: string, range = expresses.at(-1) as string) =>
    run(binaries.get(line) as string, script.split(' '), projects.get(range) as string)

  const conversation = {
    node: expect.stringMatching(new RegExp(`^v${line}(\\.|$)`)),
    inExpress: {
      whole: 'Hello there.',
      streamed: ['Hello', ' there.'],
      busyStatus: 503,
      own: 'my own route',
      limited: [200, 429],
      unknownStatus: 404,
    },
    inNode: { whole: 'Hello there.' },
    builtInModel: true,
    oneErrorClass: true,
    noDatabase: 'No database found at none.db.',
    from: ['tiny'],
  }

  test.each(expresses)(
    'an ES module imports every entry point and serves a chat in Express %s',
    async (range) => {
      const { stdout, stderr } = await node('entry-points.mjs', range)

      expect(JSON.parse(stdout)).toEqual(conversation)
      expect(stderr).toBe('')
    },
  )

  test.each(expresses)(
    'a CommonJS module requires every entry point and serves a chat in Express %s',
    async (range) => {
      const { stdout, stderr } = await node('entry-points.cjs', range)

      expect(JSON.parse(stdout)).toEqual(conversation)
      expect(stderr).toBe('')
    },
  )

  test.each(['local-engine.mjs', 'local-engine.cjs'])(
    '%s gets an answer from the built-in model',
    async (file) => {
      const { stdout, stderr } = await node(file)

      expect(JSON.parse(stdout)).toEqual({ node: conversation.node, text: 'Hello! How can I help you?' })
      expect(stderr).toBe('')
    },
  )

  test('the built-in model answers on the three APIs, with keys in SQLite', async () => {
    const { stdout } = await node('smoke.mjs')

    expect(JSON.parse(stdout)).toEqual({
      node: conversation.node,
      openai: 'Hello! How can I help you?',
      anthropic: 'Hello! How can I help you?',
      ollama: 'Hello! How can I help you?',
      refused: 'invalid_api_key',
      stored: 'smoke',
    })
  })

  test('the example for Express serves its own routes and the chat', async () => {
    const { stdout } = await node('example.mjs ./app.js')

    expect(JSON.parse(stdout)).toEqual({
      node: conversation.node,
      users: [
        { id: 1, name: 'Ada' },
        { id: 2, name: 'Grace' },
      ],
      text: 'Hello! How can I help you?',
    })
  })

  test('the console serves its page and its script', async () => {
    const { stdout } = await node('console.mjs')

    expect(JSON.parse(stdout)).toEqual({ encoding: 'gzip', session: { logins: { key: false, link: true } } })
  })

  test('npx runs the command modelmount, which prints its version', async () => {
    const PATH = [dirname(binaries.get(line) as string), environment.PATH].join(delimiter)

    const { stdout } = await run('npx', ['--no', '-c', 'node --version && modelmount --version'], project, {
      ...environment,
      PATH,
    })

    expect(stdout.trim().split('\n')).toEqual([
      expect.stringMatching(new RegExp(`^v${line}(\\.|$)`)),
      version,
    ])
  })
})

test('without node-llama-cpp, the error names the command that installs it', async () => {
  const { stdout } = await run(
    process.execPath,
    ['no-engine.mjs'],
    projects.get(expresses[0] as string) as string,
  )

  const message = 'The engine is not installed. Install it with: npm install node-llama-cpp@3.22.1'
  expect(JSON.parse(stdout)).toEqual({ code: 'upstream', message, health: message })
})

test('without the engine build for this machine, the error names the command that installs it', async () => {
  const build = join(project, 'node_modules/@node-llama-cpp', `${process.platform}-${process.arch}`)
  await rename(build, `${build}-away`)
  try {
    // A separate runtime folder, so that the app does not connect to a model process of an earlier test.
    const alone = { ...environment, XDG_RUNTIME_DIR: await mkdtemp(join(folder, 'run-')) }
    const { stdout } = await run(process.execPath, ['no-engine.mjs'], project, alone)

    const message = expect.stringMatching(
      /not installed\. Install it with: npm install @node-llama-cpp\/\S+@3\.22\.1$/,
    )
    expect(JSON.parse(stdout)).toEqual({ code: 'upstream', message, health: message })
  } finally {
    await rename(`${build}-away`, build)
  }
})

test.each(expresses)('a strict TypeScript project with Express %s compiles', async (range) => {
  const path = projects.get(range) as string
  await writeFile(
    join(path, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        module: 'NodeNext',
        strict: true,
        skipLibCheck: false,
        noEmit: true,
        types: ['node'],
      },
      files: ['types.ts', 'types.cts'],
    }),
  )

  const { stdout } = await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc')], path)

  expect(stdout).toBe('')
})

describe.each(nests)('packed packages with Nest %s', (line) => {
  const path = (): string => projects.get(line) as string

  test.each([
    ['an ES module imports LlmModule', 'nest.mjs'],
    ['a CommonJS module requires LlmModule', 'nest.cjs'],
  ])('%s and serves a chat behind a guard', async (_what, script) => {
    const { stdout, stderr } = await run(process.execPath, [script], path())

    expect(JSON.parse(stdout)).toEqual({
      status: 200,
      whole: 'Hello there.',
      streamed: ['Hello', ' there.'],
      refused: [401, 'Say who you are.'],
      wrongMethod: 405,
      injected: [expect.objectContaining({ name: 'any' })],
    })
    expect(stderr).toBe('')
  })

  test('a strict TypeScript app compiles', async () => {
    const decorators = { experimentalDecorators: true, emitDecoratorMetadata: true, skipLibCheck: true }
    await writeFile(
      join(path(), 'tsconfig.json'),
      JSON.stringify({
        compilerOptions: { module: 'NodeNext', strict: true, noEmit: true, types: ['node'], ...decorators },
        files: ['nest-types.ts'],
      }),
    )

    const { stdout } = await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc')], path())

    expect(stdout).toBe('')
  })
})
