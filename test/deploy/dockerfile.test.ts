/** Runs docs/operations/deploy/docker/Dockerfile as far as that is possible without a container runtime: see container.ts. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  createReadStream,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { environment, nodeOf, pack, root, run } from '../packaging/npm.ts'
import { freePort } from '../support/free-port.ts'
import { type Listening, listen } from '../support/listen.ts'
import {
  buildImage,
  certificates,
  childrenOf,
  createBase,
  type Image,
  runInImage,
  startImage,
} from './container.ts'
import { readRecipe, requireProgram } from './debian.ts'

vi.setConfig({ testTimeout: 120_000 })

const folder = mkdtempSync(join(tmpdir(), 'docker-'))
const context = join(folder, 'app')
let registry: Listening
let image: Image

beforeAll(async () => {
  requireProgram('debootstrap')
  const base = join(folder, 'base')
  await createBase(base, await nodeOf('22', folder))
  await createContext()
  const npmRegistry = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim()
  const build = {
    ...{ base, context, into: join(folder, 'stages') },
    environment: { npm_config_registry: npmRegistry, NODE_EXTRA_CA_CERTS: join('/', certificates) },
  }
  mkdirSync(build.into)
  image = await buildImage(readRecipe('docker/Dockerfile'), build)
}, 600_000)

afterAll(async () => {
  await registry.close()
  rmSync(folder, { recursive: true, force: true })
}, 60_000)

/** An app as a user has it, except that its packages are those of this repository. */
async function createContext(): Promise<void> {
  mkdirSync(context)
  const tarballs = await pack(['core', 'tiny-model', 'express'], folder)
  registry = await listen(
    (request, response) => void createReadStream(join(folder, request.url ?? '')).pipe(response),
  )
  const [core, tinyModel, express] = tarballs.map((path) => `${registry.url}/${basename(path)}`)
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const { version: libraryVersion } = JSON.parse(
    readFileSync(join(root, 'node_modules/node-llama-cpp/package.json'), 'utf8'),
  )
  writeFileSync(
    join(context, 'package.json'),
    JSON.stringify({
      name: 'app',
      type: 'module',
      // Empty packages stand for the engines of graphics cards, which the Dockerfile removes.
      overrides: manifest.overrides,
      dependencies: {
        '@modelmount/core': core,
        '@modelmount/tiny-model': tinyModel,
        '@modelmount/express': express,
        express: manifest.devDependencies.express,
        'node-llama-cpp': libraryVersion,
      },
    }),
  )
  await run('npm', ['install', '--package-lock-only', '--ignore-scripts'], context)
  cpSync(join(root, 'test/deploy/app/server.js'), join(context, 'server.js'))
  writeFileSync(join(context, '.dockerignore'), readRecipe('docker/.dockerignore'))
  writeFileSync(join(context, '.env'), 'POSTGRES_PASSWORD=secret')
  writeFileSync(join(context, 'large.gguf'), 'weights')
}

async function start(): Promise<{
  url: string
  stop: () => Promise<unknown>
  settings: Readonly<Record<string, string>>
}> {
  const settings = { HOST: '127.0.0.1', PORT: String(await freePort()) }
  const child = startImage(image, settings)
  onTestFinished(() => void child.kill('SIGKILL'))
  const closed = once(child, 'close')
  await once(createInterface({ input: child.stdout as NodeJS.ReadableStream }), 'line')
  const stop = async () => {
    const [first] = childrenOf(child.pid as number)
    process.kill(first as number, 'SIGTERM')
    const [code] = await closed
    return code
  }
  return { url: `http://127.0.0.1:${settings.PORT}`, stop, settings }
}

test('the image has the app and the engine for the CPU, no secrets, no models and no engines for graphics cards', async () => {
  const list = async (path: string): Promise<readonly string[]> => {
    const text = await runInImage({ ...image, user: 'root' }, ['ls', '-A', path])
    return text.trim().split('\n')
  }

  expect(await list('/app')).toEqual([
    '.dockerignore',
    'node_modules',
    'package-lock.json',
    'package.json',
    'server.js',
  ])
  expect(
    (await list('/app/node_modules/@node-llama-cpp')).filter((name) => name.startsWith('linux-x64')),
  ).toEqual(['linux-x64'])
  expect((statSync(join(image.root, 'run/app')).mode & 0o777).toString(8)).toBe('700')
  expect([image.user, image.environment.OLLAMA_MODELS]).toEqual(['node', '/models'])
})

test('a container answers, is healthy, and drains its streams at SIGTERM', async ({ task }) => {
  const { url, stop, settings } = await start()
  const messages = [{ role: 'user', content: 'Hello' }]
  const chat = (body: object) =>
    fetch(`${url}/api/chat`, { method: 'POST', body: JSON.stringify({ model: 'tiny', messages, ...body }) })

  expect(await (await chat({ stream: false })).json()).toMatchObject({ done: true })
  await runInImage(image, image.healthCheck, settings)
  expect(await (await fetch(`${url}/readyz`)).text()).toBe('ok')
  const format = { type: 'array', items: { enum: ['a', 'b'] }, minItems: 200 }
  const stream = await chat({ format, options: { num_predict: 3_000 } })
  const [text, code] = await Promise.all([stream.text(), stop()])

  expect(text.trim().split('\n').at(-1)).toContain('"done":true')
  expect(code).toBe(0)
  await expect(runInImage(image, image.healthCheck, settings)).rejects.toThrow()
  const kilobytes = (path: string) =>
    Number(/^\d+/.exec(execFileSync('du', ['-sk', path], { encoding: 'utf8' })))
  const megabytes = Math.round(kilobytes(join(image.root, 'app')) / 1_024)
  const added = Math.round((kilobytes(image.root) - kilobytes(join(folder, 'base'))) / 1_024)
  Object.assign(task.meta, {
    report: `Size of /app: ${megabytes} MiB. Everything that the Dockerfile adds to its base: ${added} MiB.`,
  })
})

test('processes of an ended container are gone, and environment variables of this machine are not in it', async () => {
  const { stop } = await start()

  expect(await runInImage(image, ['env'])).not.toContain(`${environment.PATH}`)
  expect(await stop()).toBe(0)
})
