/** Every Python SDK against the routes in Express, with the built-in model. */
import { execFile, spawn } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createLlm, type Llm } from '@modelmount/core'
import { modelPath } from '@modelmount/tiny-model'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.mjs'
import { emptyFolder } from '../support/empty-folder.ts'
import { type Listening, listen } from '../support/listen.ts'
import { encoderModel } from '../support/models.ts'
import { SmallRegistry } from '../support/registry.ts'
import { greeting, poor, serveLimited } from './limited.ts'
import { keys, mounts, type Server, serve } from './mounts.ts'
import { type ScriptedServer, serveScripts } from './scripted-server.ts'
import { situationNames } from './situations.ts'

const sdks = new Set(['ollama', 'openai', 'anthropic'])

const requirements = fileURLToPath(new URL('python/requirements.txt', import.meta.url))
const script = fileURLToPath(new URL('python/situations.py', import.meta.url))
const limitsScript = fileURLToPath(new URL('python/limits.py', import.meta.url))
const batchesScript = fileURLToPath(new URL('python/batches.py', import.meta.url))
const helpersScript = fileURLToPath(new URL('python/helpers.py', import.meta.url))
const methodsScript = fileURLToPath(new URL('python/methods.py', import.meta.url))
const mount = 'Express 5'
const models = emptyFolder()
let folder: string
let server: Server

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'python-'))
  const run = promisify(execFile)
  const limit = { timeout: 120_000 }
  await run('python3', ['-m', 'venv', folder], limit)
  // Python compiles the modules that the scripts import, which are a part of all.
  const install = ['install', '--quiet', '--disable-pip-version-check', '--no-compile', '-r', requirements]
  await run(pythonIn(folder), ['-m', 'pip', ...install], limit)
  server = await serve(mounts[mount], models)
}, 300_000)

afterAll(async () => {
  await server?.close()
  await rm(folder, { recursive: true })
})

describe.each([...sdks].flatMap((sdk) => ['sync', 'async'].map((mode) => [sdk, mode] as const)))(
  'the Python SDK %s, %s',
  (sdk, mode) => {
    let client: string
    let lines: ReadonlyMap<string, Line>

    beforeAll(async () => {
      const pinned = await readFile(requirements, 'utf8')
      client = `${sdk} ${pinned.match(new RegExp(`^${sdk}==(.*)$`, 'm'))?.[1]}, ${mode}`
      lines = await runSituations(sdk, mode)
    }, 150_000)

    test.for(situationNames)('%s', (situation, { task }) => {
      const { outcome = '', failure = 'The script ended before this situation.' } = lines.get(situation) ?? {}

      expect(outcome, failure).not.toBe('')
      task.meta.cell = { mount: `${mount}, from Python`, client, situation, outcome }
    })
  },
)

describe.each(['sync', 'async'])("Ollama's Python SDK, %s", (mode) => {
  const store = emptyFolder()
  symlinkSync(encoderModel, join(store, 'bert.gguf'))
  let registry: { readonly host: string; close(): Promise<void> }
  let llm: Llm
  let app: Listening

  beforeAll(async () => {
    registry = await (hasDockerRegistry ? startDockerRegistry() : SmallRegistry.start())
    const privateRegistries = [registry.host]
    llm = await createLlm({ models: store, auth: 'host', store: { registries: [], privateRegistries } })
    app = await listen(mounts[mount].handler(llm))
    await llm.load('tiny')
  }, 60_000)

  afterAll(async () => {
    await app?.close()
    await llm?.close()
    await registry?.close()
  })

  test('every method works', async () => {
    const env = { SERVER_URL: app.url, RIGHT_KEY: keys.right, REGISTRY: registry.host, GGUF: modelPath }
    const { stdout } = await promisify(execFile)(pythonIn(folder), [methodsScript, mode], { env })
    const lines = stdout.split('\n').filter(Boolean)

    const tried = lines.map((line) => JSON.parse(line) as { method: string; failure: string | null })
    expect(tried.filter(({ failure }) => failure)).toEqual([])
    expect(tried.length).toBeGreaterThan(15)
  }, 150_000)
})

describe('batches in a separate database', () => {
  let llm: Llm
  let app: Listening

  beforeAll(async () => {
    const database = join(emptyFolder(), 'batches.db')
    llm = await createLlm({ models, auth: 'host', batches: { database }, local: { contextSize: 4096 } })
    app = await listen(mounts[mount].handler(llm))
    await llm.load('tiny')
  }, 60_000)

  afterAll(async () => {
    await app?.close()
    await llm?.close()
  })

  test.for(['openai', 'anthropic'].flatMap((sdk) => ['sync', 'async'].map((mode) => [sdk, mode] as const)))(
    'the Python SDK %s, %s, runs a whole batch and cancels one',
    { timeout: 60_000 },
    async ([sdk, mode]) => {
      const env = { SERVER_URL: app.url, RIGHT_KEY: keys.right }
      const { stdout } = await promisify(execFile)(pythonIn(folder), [batchesScript, sdk, mode], { env })

      expect(stdout).toBe('ok\n')
    },
  )
})

describe('heartbeats between all frames', () => {
  let app: ScriptedServer

  beforeAll(async () => {
    app = await serveScripts(models)
  })

  afterAll(() => app?.close())

  test.for(['openai', 'anthropic'].flatMap((sdk) => ['sync', 'async'].map((mode) => [sdk, mode] as const)))(
    'the helpers of the Python SDK %s, %s, join answers, and each error has its class',
    { timeout: 60_000 },
    async ([sdk, mode]) => {
      const env = { SERVER_URL: app.url }
      const { stdout } = await promisify(execFile)(pythonIn(folder), [helpersScript, sdk, mode], { env })

      expect(stdout).toBe('ok\n')
    },
  )
})

// Each waits for seconds, so they run side by side.
test.concurrent.for(
  ['openai', 'anthropic'].flatMap((sdk) => ['sync', 'async'].map((mode) => [sdk, mode] as const)),
)(
  'with the Python SDK %s, %s, a rate-limited call is answered after one retry, and a call at the spending limit is not retried',
  { timeout: 60_000 },
  async ([sdk, mode], { onTestFinished }) => {
    const limited = await serveLimited(models, 3_000)
    onTestFinished(() => limited.close())
    /** Resolves with the last line of the script. Its first line reports that the client module is loaded. */
    const ask = async (name: string, meanwhile: () => Promise<void>): Promise<string | undefined> => {
      const env = { SERVER_URL: limited.url, KEY: name }
      const python = spawn(pythonIn(folder), [limitsScript, sdk, mode], {
        env,
        stdio: ['pipe', 'pipe', 'inherit'],
        timeout: 30_000,
      })
      const output: string[] = []
      for await (const line of createInterface(python.stdout)) {
        output.push(line)
        if (line !== 'ready') continue
        await meanwhile()
        python.stdin.end('go\n')
      }
      return output.at(-1)
    }

    expect(await ask('ada', () => limited.useUp('ada'))).toBe(greeting)
    limited.expectOneWait()

    limited.arrivals.length = 0
    const refusal = sdk === 'openai' ? 'RateLimitError' : 'BadRequestError'
    expect(await ask(poor, async () => {})).toBe(refusal)
    expect(limited.arrivals).toHaveLength(1)
  },
)

/** A line of the script's output: the result of a situation, or a request to the test. */
interface Line {
  readonly situation?: string
  readonly outcome?: string
  readonly failure?: string
  readonly please?: 'kill the engine'
}

async function runSituations(sdk: string, mode: string): Promise<ReadonlyMap<string, Line>> {
  const lines = new Map<string, Line>()
  // The script gets no other environment variables, since these may set a proxy or keys.
  const env = { SERVER_URL: server.url, RIGHT_KEY: keys.right, WRONG_KEY: keys.wrong }
  const python = spawn(pythonIn(folder), [script, sdk, mode], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 120_000,
  })
  for await (const text of createInterface(python.stdout)) {
    const line = JSON.parse(text) as Line
    if (line.please) server.killEngine()
    if (line.situation) lines.set(line.situation, line)
  }
  return lines
}

const pythonIn = (venv: string): string => join(venv, 'bin', 'python')
