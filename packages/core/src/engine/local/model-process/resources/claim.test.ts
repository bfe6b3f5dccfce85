import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ProcessRecord } from '../../ipc/process-config.ts'
import { getPidNamespace, readRecord, writeRecord } from '../../ipc/runtime-dir.ts'
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
