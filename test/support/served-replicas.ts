/** Replicas of the built-in model: `modelmount serve` in child processes, each with a model process of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { childrenOf, noOrphan } from './processes.ts'

const bin = fileURLToPath(new URL('../../packages/cli/bin/modelmount.js', import.meta.url))

export class ServedReplica {
  readonly #args: readonly string[]
  /** Runtime folder and models, so that replicas share no model process. */
  readonly #folder = mkdtempSync(join(tmpdir(), 'replica-'))
  readonly #modelProcesses = new Set<number>()
  #server: ChildProcess | undefined
  url = ''

  /** @param args further options of `modelmount serve` */
  constructor(args: readonly string[] = []) {
    this.#args = args
  }

  /** Resolves when the model is loaded. The URL is always the same. */
  async start(): Promise<void> {
    const port = this.url ? new URL(this.url).port : '0'
    const models = join(this.#folder, 'models')
    mkdirSync(models, { recursive: true })
    const server = spawn(
      process.execPath,
      [bin, 'serve', '--port', port, '--models', models, '--keep-alive', 'forever', ...this.#args],
      {
        stdio: ['ignore', 'pipe', 'ignore'],
        env: { ...process.env, OLLAMA_HOST: '', XDG_RUNTIME_DIR: this.#folder },
      },
    )
    this.#server = server
    const failed = once(server, 'exit').then(() => {
      throw new Error('The replica has ended before it listened.')
    })
    const [line] = await Promise.race([once(createInterface({ input: server.stdout }), 'line'), failed])
    failed.catch(() => {})
    this.url = String(line).replace('Listening on ', '')
    const response = await fetch(`${this.url}/v1/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'tiny', prompt: 'Hello', max_tokens: 1 }),
    })
    await response.arrayBuffer()
    for (const id of childrenOf(server.pid as number)) this.#modelProcesses.add(id)
  }

  /** Sends SIGKILL to the server and its model process, and waits for their end. */
  async kill(): Promise<void> {
    const server = this.#server
    if (!server || server.exitCode !== null || server.signalCode !== null) return
    const children = childrenOf(server.pid as number)
    const exit = once(server, 'exit')
    for (const id of [server.pid as number, ...children]) process.kill(id, 'SIGKILL')
    await exit
    await noOrphan(this.#modelProcesses)
    this.#modelProcesses.clear()
  }

  /** Kills the replica, and removes its folder. */
  async close(): Promise<void> {
    await this.kill()
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 })
  }
}
