// Starts our server in a separate process, as users run it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const command = fileURLToPath(new URL('../../packages/cli/bin/modelmount.js', import.meta.url))
const probe = new URL('probe.mjs', import.meta.url).href

/** Runs `modelmount serve` on a free port. @param options command line options, by name */
export const serve = (options) =>
  start([
    '--import',
    probe,
    command,
    'serve',
    ...Object.entries({ port: 0, ...options }).flatMap(([name, value]) => [`--${name}`, String(value)]),
  ])

/** Runs a Node program that prints its address. `probe()` returns one of its own measurements. */
export async function start(args) {
  const startedAt = performance.now()
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
  for await (const line of createInterface(child.stdout)) {
    const [, url] = /Listening on (\S+)/.exec(line) ?? []
    if (!url) continue
    const probe = async (name) => {
      child.send(name)
      const [value] = await once(child, 'message')
      return value
    }
    return { url, id: child.pid, startedAt, probe, stop }
  }
  throw new Error(`${args.join(' ')} ended without printing an address.`)
}
