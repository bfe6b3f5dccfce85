// Docker's registry for tests and benchmarks, if it is installed: Debian's package `docker-registry`.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'

const program = (process.env.PATH ?? '')
  .split(delimiter)
  .map((folder) => join(folder, 'docker-registry'))
  .find((path) => existsSync(path))

export const hasDockerRegistry = program !== undefined

/** Starts Docker's registry on a free port of the loopback address, with an empty folder. */
export async function startDockerRegistry(settings = '') {
  if (!program) throw new Error('docker-registry is not installed: apt-get install docker-registry')
  const folder = mkdtempSync(join(tmpdir(), 'docker-registry-'))
  const config = join(folder, 'config.yml')
  writeFileSync(
    config,
    `version: 0.1
storage: { filesystem: { rootdirectory: '${join(folder, 'data')}' } }
http: { addr: '127.0.0.1:0' }
log: { level: info, accesslog: { disabled: true } }
${settings}`,
  )
  const child = spawn(program, ['serve', config], { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  const host = await new Promise((resolve, reject) => {
    child.once('error', reject)
    ended.then(() => reject(new Error('docker-registry ended before it listened')))
    createInterface(child.stderr).on('line', (line) => {
      const [, address] = /listening on (127\.0\.0\.1:\d+)/.exec(line) ?? []
      if (address) resolve(address)
    })
  })
  return {
    url: `http://${host}`,
    host,
    processId: child.pid,
    close: async () => {
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
