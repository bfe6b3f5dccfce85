import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { environment, run as execute, root } from './npm.ts'

let clone: string

/** Simulates a fresh clone: copies tracked and new files, without build output and installed packages. */
beforeAll(async () => {
  clone = await mkdtemp(join(tmpdir(), 'clone-'))
  const { stdout } = await execute('git', ['ls-files', '-co', '--exclude-standard'], root)
  for (const file of stdout.trim().split('\n')) {
    await cp(join(root, file), join(clone, file), { recursive: true, force: true, preserveTimestamps: true })
    expect(dirname(file)).not.toContain('node_modules')
  }
}, 60_000)

afterAll(() => rm(clone, { recursive: true }), 60_000)

const npms = [
  { npm: '10', args: ['--ignore-scripts'], config: {} },
  { npm: '11', args: [], config: { npm_config_ignore_scripts: 'true' } },
]

describe.each(inject('isThorough') ? npms : npms.slice(0, 1))(
  'a fresh clone with npm $npm',
  ({ npm, args, config }) => {
    const run = (words: readonly string[], env = environment) =>
      execute('npx', ['-y', `npm@${npm}`, ...words], clone, env)

    test('installs without scripts, builds and serves', async () => {
      const env = { ...environment, ...config }
      expect((await run(['--version'])).stdout).toMatch(new RegExp(`^${npm}\\.`))

      await run(['ci', ...args], env)

      expect(await served(npm, env)).toBe('Hello! How can I help you?')
    }, 240_000)

    // `npm rebuild` runs the scripts that an install without scripts omits.
    test('runs the omitted install scripts, and serves', async () => {
      await run(['rebuild'])

      expect(await served(npm, environment)).toBe('Hello! How can I help you?')
    }, 240_000)
  },
)

/** Starts the server of the clone, and returns the built-in model's answer to a greeting. */
async function served(npm: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const serve = spawn('npx', ['-y', `npm@${npm}`, 'start', '--', '--port', '0'], {
    cwd: clone,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(serve, 'close')
  const stop = () => {
    if (serve.exitCode === null && serve.signalCode === null) {
      process.kill(-(serve.pid as number), 'SIGTERM')
    }
  }
  // Shorter than the time limit of the test, which would leave the server running.
  const limit = setTimeout(stop, 90_000)
  try {
    return await greet(serve.stdout)
  } finally {
    clearTimeout(limit)
    stop()
    await closed
  }
}

async function greet(output: NodeJS.ReadableStream): Promise<string | undefined> {
  const printed: string[] = []
  for await (const line of createInterface({ input: output })) {
    printed.push(line)
    const [address] = /http:\/\/\S+/.exec(line) ?? []
    if (!address) continue
    const response = await fetch(`${address}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ model: 'tiny', temperature: 0, messages: [{ role: 'user', content: 'Hello' }] }),
    })
    const { choices } = (await response.json()) as { choices: { message: { content: string } }[] }
    return choices[0]?.message.content
  }
  throw new Error(`The server ended without printing an address:\n${printed.join('\n')}`)
}
