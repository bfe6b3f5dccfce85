import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { ProcessRecord } from '../../ipc/process-config.ts'
import {
  getPidNamespace,
  readRecord,
  readRecords,
  socketAddressOf,
  writeRecord,
} from '../../ipc/runtime-dir.ts'
import { claimName, withLock } from './claim.ts'

let runtimeDir: string
let servers: Server[]

beforeEach(() => {
  runtimeDir = mkdtempSync(join(tmpdir(), 'claim-'))
  servers = []
})

afterEach(() => {
  for (const server of servers) server.close()
  rmSync(runtimeDir, { recursive: true })
})

const recordOf = (processId = process.pid, folder = join(runtimeDir, 'process-own')): ProcessRecord => ({
  processId,
  namespace: getPidNamespace(),
  folder,
  state: 'loading',
  since: Date.now(),
  reservedBytes: 0,
  sizeBytes: 0,
  reservedVramBytes: 0,
  vramBytes: 0,
  cards: {},
})

function claim(name = 'm'): Promise<boolean> {
  const server = createServer()
  servers.push(server)
  return claimName({ runtimeDir, name }, server, recordOf())
}

/** A process id that no process has any more. */
const endedPid = (): number =>
  Number(execFileSync(process.execPath, ['-p', 'process.pid'], { encoding: 'utf8' }))

function age(path: string): void {
  const earlier = new Date(Date.now() - 120_000)
  utimesSync(path, earlier, earlier)
}

describe('claimName', () => {
  test('lets one of several processes listen, and leaves no lock behind', async () => {
    const claimed = await Promise.all([claim(), claim(), claim()])

    expect(claimed.filter(Boolean)).toEqual([true])
    expect(readRecord(runtimeDir, 'm')).toEqual(expect.objectContaining({ processId: process.pid }))
    expect(readdirSync(runtimeDir).filter((file) => file.includes('mutex'))).toEqual([])
  })

  test('takes over the socket and the lock of a killed process', async () => {
    const lock = join(runtimeDir, 'm.mutex')
    for (const file of ['m.sock', 'm.mutex']) writeFileSync(join(runtimeDir, file), '')
    age(lock)

    expect(await claim()).toBe(true)
    expect(existsSync(lock)).toBe(false)
  })

  test('removes files of dead processes, but not of a process that may be starting', async () => {
    const dead = join(runtimeDir, 'process-dead')
    const old = [join(runtimeDir, 'process-old'), join(runtimeDir, `m.mutex-${crypto.randomUUID()}`)]
    const young = join(runtimeDir, 'process-young')
    for (const folder of [dead, old[0] as string, young]) mkdirSync(folder)
    writeFileSync(old[1] as string, '')
    for (const path of old) age(path)
    writeRecord(runtimeDir, 'dead', recordOf(endedPid(), dead))

    await claim()

    expect([dead, ...old, young].map((path) => existsSync(path))).toEqual([false, false, false, true])
    expect(readRecord(runtimeDir, 'dead')).toBeUndefined()
  })

  test('removes the record of a dead process whose id is in use, but not the one of a running process', async () => {
    const [running, reused, foreign] = ['running', 'reused', 'foreign'].map((name) => {
      const folder = join(runtimeDir, `process-${name}`)
      mkdirSync(folder)
      writeRecord(runtimeDir, name, { ...recordOf(process.pid, folder), state: 'busy', since: 0 })
      return folder
    })
    writeRecord(runtimeDir, 'foreign', {
      ...(readRecord(runtimeDir, 'foreign') as ProcessRecord),
      namespace: 'pid:[1]',
    })
    const server = createServer().listen(socketAddressOf(runtimeDir, 'running'))
    servers.push(server)
    await once(server, 'listening')

    await claim()

    expect([running, reused, foreign].map((path) => existsSync(path as string))).toEqual([true, false, false])
    expect([...readRecords(runtimeDir).keys()].sort()).toEqual(['m', 'running'])
  })

  test('keeps the record and the folder of a process that it cannot reach in another PID namespace, for a day', async () => {
    const folders = ['young', 'old'].map((name, index) => {
      const folder = join(runtimeDir, `process-${name}`)
      mkdirSync(folder)
      age(folder)
      const since = Date.now() - index * 2 * 24 * 3_600_000
      writeRecord(runtimeDir, name, { ...recordOf(1, folder), namespace: 'pid:[1]', state: 'busy', since })
      return folder
    })

    await claim()

    expect(folders.map((folder) => existsSync(folder))).toEqual([true, false])
    expect([...readRecords(runtimeDir).keys()].sort()).toEqual(['m', 'young'])
  })

  test('leaves the name to a stopped process whose queue of connections is full', async () => {
    const child = spawn(process.execPath, [
      '-e',
      `require('node:net').createServer().listen({ path: ${JSON.stringify(socketAddressOf(runtimeDir, 'm'))}, backlog: 1 }, () => console.log('on'))`,
    ])
    onTestFinished(() => void child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    child.kill('SIGSTOP')
    const sockets = Array.from({ length: 5 }, () =>
      connect(socketAddressOf(runtimeDir, 'm')).on('error', () => {}),
    )
    onTestFinished(() => void sockets.map((socket) => socket.destroy()))
    await expect.poll(() => sockets.some(({ destroyed }) => destroyed)).toBe(true)

    expect(await claim()).toBe(false)
  })

  test('the record of a process that waited for its name counts as new', async () => {
    const server = createServer()
    servers.push(server)
    const startedAt = Date.now()

    await claimName({ runtimeDir, name: 'm' }, server, { ...recordOf(), since: startedAt - 60_000 })

    expect(readRecord(runtimeDir, 'm')?.since).toBeGreaterThanOrEqual(startedAt)
  })
})

describe('withLock', () => {
  test('runs one task at a time', async () => {
    let running = 0
    const task = async (): Promise<number> => {
      const count = ++running
      await delay(20)
      running--
      return count
    }

    expect(await Promise.all([1, 2, 3].map(() => withLock(runtimeDir, 'memory', task)))).toEqual([1, 1, 1])
  })

  test('throws if the lock is not free in time, and rethrows errors of its task', async () => {
    await withLock(runtimeDir, 'memory', async () => {
      const waiting = withLock(runtimeDir, 'memory', async () => {}, 100)
      await expect(waiting).rejects.toThrow('The lock "memory" was not free within 0.1 s.')
    })
    const failing = withLock(runtimeDir, 'memory', () => Promise.reject(new Error('no room')))
    await expect(failing).rejects.toThrow('no room')
  })

  test('tells a task that its lock was taken over', async () => {
    await withLock(runtimeDir, 'memory', async (expectOwned) => {
      await expectOwned()
      rmSync(join(runtimeDir, 'memory.mutex'))
      await expect(expectOwned()).rejects.toThrow()
    })
  })

  test('removes the lock of a process that exits during its task, but not the lock of another process', () => {
    const path = join(runtimeDir, 'memory.mutex')
    const exitDuring = (step: string): void => {
      const claimUrl = fileURLToPath(new URL('./claim.ts', import.meta.url)).replace('/src/', '/dist/')
      const code = `
        import { rmSync, writeFileSync } from 'node:fs'
        import { withLock } from ${JSON.stringify(claimUrl.replace(/\.ts$/, '.js'))}
        const path = ${JSON.stringify(path)}
        await withLock(${JSON.stringify(runtimeDir)}, 'memory', async () => { ${step}; process.exit(0) })`
      execFileSync(process.execPath, ['--input-type=module', '-e', code])
    }

    exitDuring('')
    expect(existsSync(path)).toBe(false)
    exitDuring("rmSync(path); writeFileSync(path, '')")
    expect(existsSync(path)).toBe(true)
  })
})
