// A real Redis, or Valkey under this name, if `redis-server` is on the PATH. It keeps nothing on the disk.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'

const program = (process.env.PATH ?? '')
  .split(delimiter)
  .map((folder) => join(folder, 'redis-server'))
  .find((path) => existsSync(path))

export const hasRedis = program !== undefined

/** Starts it on a Unix socket. */
export async function startRedis() {
  const folder = mkdtempSync(join(tmpdir(), 'redis-'))
  const path = join(folder, 'socket')
  const settings = ['--port', '0', '--unixsocket', path, '--dir', folder, '--save', '', '--appendonly', 'no']
  const child = spawn(program, settings, { stdio: ['ignore', 'pipe', 'ignore'] })
  const exited = once(child, 'exit')
  for await (const line of createInterface({ input: child.stdout }))
    if (/ready to accept connections/i.test(line)) break
  child.stdout.resume()
  return {
    path,
    pid: child.pid,
    stop: async () => {
      child.kill('SIGKILL')
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
