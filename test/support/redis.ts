/** A real Redis for tests, if `redis-server` is on the PATH: Debian's package, or that of Valkey under this name. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { createClient } from 'redis'

const server = (process.env.PATH ?? '')
  .split(delimiter)
  .map((folder) => join(folder, 'redis-server'))
  .find((path) => existsSync(path))

/** `.ci/run` has it, so that no test is skipped there. */
export const hasRedis = server !== undefined || process.env.CI !== undefined

export interface RunningRedis {
  /** Path of its socket. */
  readonly path: string
  readonly pid: number
  /** Kills it, which loses all keys. */
  kill(): Promise<void>
  /** Starts it again after `kill`, at the same path. */
  start(): Promise<void>
  /** Kills it and deletes its folder. */
  stop(): Promise<void>
}

/** Starts Redis on a Unix socket, without a port and without files for its keys. */
export async function startRedis(): Promise<RunningRedis> {
  const folder = mkdtempSync(join(tmpdir(), 'redis-'))
  const path = join(folder, 'socket')
  const settings = ['--port', '0', '--unixsocket', path]
  let child = await spawnRedis(folder, settings)
  const kill = () => killed(child)
  return {
    path,
    get pid() {
      return child.pid as number
    },
    kill,
    start: async () => {
      child = await spawnRedis(folder, settings)
    },
    stop: async () => {
      await kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Starts a cluster of one server, which rejects scripts with keys of several slots like any cluster. */
export async function startRedisCluster(): Promise<{ readonly port: number; stop(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'redis-'))
  const [port, bus] = await freePorts(2)
  const child = await spawnRedis(folder, [
    ...['--bind', '127.0.0.1', '--port', `${port}`],
    ...['--cluster-enabled', 'yes', '--cluster-port', `${bus}`],
    // A server without peers does not know its address, and ioredis needs it.
    ...['--cluster-announce-ip', '127.0.0.1'],
  ])
  const client = await connectRedis({ host: '127.0.0.1', port: port as number })
  await client.sendCommand(['CLUSTER', 'ADDSLOTSRANGE', '0', '16383'])
  while (!String(await client.sendCommand(['CLUSTER', 'INFO'])).includes('cluster_state:ok'));
  client.destroy()
  return {
    port: port as number,
    stop: async () => {
      await killed(child)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** A client of the package `redis`. Call its `destroy()`. Errors of its connection are ignored. */
export async function connectRedis(socket: { path: string } | { host: string; port: number }) {
  const client = createClient({ socket: { ...socket, reconnectStrategy: 20 } })
  client.on('error', () => {})
  await client.connect()
  return client
}

async function spawnRedis(folder: string, settings: readonly string[]): Promise<ChildProcess> {
  if (!server)
    throw new Error('redis-server is not on the PATH: .ci/run shows how to get it without a service')
  const always = ['--dir', folder, '--save', '', '--appendonly', 'no']
  const child = spawn(server, [...settings, ...always], { stdio: ['ignore', 'pipe', 'ignore'] })
  const lines: string[] = []
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stdout })
      .on('line', (line) => {
        if (lines.length < 100) lines.push(line)
        if (/ready to accept connections/i.test(line)) resolve()
      })
      .on('close', () => reject(new Error(`Redis has ended: ${lines.join('\n')}`)))
  })
  return child
}

async function killed(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL')
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}

async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((one) => once(one, 'listening')))
  const ports = servers.map((one) => (one.address() as { port: number }).port)
  await Promise.all(servers.map((one) => new Promise((resolve) => one.close(resolve))))
  return ports
}
