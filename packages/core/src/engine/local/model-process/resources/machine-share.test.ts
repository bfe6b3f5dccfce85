import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { receive, send } from '../../ipc/framing.ts'
import type { ProcessRecord } from '../../ipc/process-config.ts'
import {
  getPidNamespace,
  readRecord,
  removeRecord,
  socketAddressOf,
  writeRecord,
} from '../../ipc/runtime-dir.ts'
import { coresPerProcess } from './cores.ts'
import { MachineShare } from './machine-share.ts'

let runtimeDir: string
let servers: Server[] = []
/** Processes that were asked to end, in order. */
let asked: string[] = []

beforeEach(() => {
  runtimeDir = mkdtempSync(join(tmpdir(), 'run-'))
})

afterEach(() => {
  for (const server of servers) server.close()
  servers = []
  asked = []
  rmSync(runtimeDir, { recursive: true })
})

const presence = (waitLimitMs?: number) =>
  new MachineShare({ runtimeDir, name: 'own', folder: join(runtimeDir, 'own') }, waitLimitMs)
const everything = Number.MAX_SAFE_INTEGER
const recordOf = (name: string): ProcessRecord | undefined => readRecord(runtimeDir, name)

function writeOther(name: string, record: Partial<ProcessRecord>): void {
  const place = { processId: process.pid, namespace: getPidNamespace(), folder: join(runtimeDir, name) }
  const nothing = { state: 'idle', since: 0, reservedBytes: 0, sizeBytes: 0 } as const
  writeRecord(runtimeDir, name, { ...place, ...nothing, ...record })
}

/** Another process of the machine, which ends when it is asked to. */
async function other(name: string, record: Partial<ProcessRecord>): Promise<void> {
  writeOther(name, record)
  const server = createServer((socket) => {
    receive(socket, (message) => {
      asked.push(`${name}: ${(message as { readonly type: string }).type}`)
      removeRecord(runtimeDir, name)
      send(socket, { type: 'leaving' })
      socket.end()
    })
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(socketAddressOf(runtimeDir, name), resolve))
}

test('writes its state soon, and nothing after its end', async () => {
  const own = presence()
  expect(own).toMatchObject({ isBusy: true, record: { state: 'loading' } })

  own.onLoaded(9, 7)
  await expect.poll(() => recordOf('own')).toMatchObject({ state: 'idle', sizeBytes: 9, reservedBytes: 7 })
  own.onCall()
  own.onCall()
  own.onCallEnd()
  await expect.poll(() => recordOf('own')).toMatchObject({ state: 'busy', processId: process.pid })
  own.onCallEnd()
  await expect.poll(() => recordOf('own')).toMatchObject({ state: 'idle' })
  own.onCall()
  own.end()
  own.onCallEnd()

  expect(recordOf('own')).toBeUndefined()
  // Twice the write delay: nothing may be written after the end.
  await delay(100)
  expect(recordOf('own')).toBeUndefined()
})

test('asks idle processes to end for memory, the longest idle first, and never busy ones', async () => {
  await other('young', { since: 3, sizeBytes: everything })
  await other('old', { since: 1 })
  await other('loading', { since: 0, state: 'loading' })
  await other('busy', { since: 0, state: 'busy' })

  const askedAt = performance.now()
  const { free, total } = await presence().reserve(everything)

  expect(asked).toEqual(['old: yield', 'young: yield'])
  // The wait ends when the processes close their sockets, although they send a message first.
  expect(performance.now() - askedAt).toBeLessThan(4_000)
  expect(free).toBeLessThanOrEqual(total)
})

test('asks no process while there is room, and counts reservations of others as used', async () => {
  const before = await presence().reserve(1_000)
  await other('idle', { reservedBytes: 1e9 })

  const after = await presence().reserve(1_000)

  expect(asked).toEqual([])
  // Other programs allocate and free memory meanwhile.
  expect(before.free - after.free).toBeGreaterThan(0.5e9)
})

test('asks no process to end if that would free too little while others are busy', async () => {
  await other('busy', { state: 'busy' })
  await other('idle', { sizeBytes: 1_000 })

  await presence().reserve(everything)

  expect(asked).toEqual([])
})

test('drops its reservation while it waits for a busy process to become idle', async () => {
  await other('busy', { state: 'busy' })
  const own = presence()
  await own.reserve(everything)

  const waiting = own.waitForMemory()

  expect(recordOf('own')).toMatchObject({ state: 'waiting', reservedBytes: 0 })
  writeOther('busy', { state: 'idle' })
  expect(await waiting).toBe(true)
  await own.reserve(0)
  expect(recordOf('own')).toMatchObject({ state: 'loading' })
})

test('counts the memory of a process that shuts down until it has ended', async () => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1_000)'])
  await other('busy', { state: 'busy', processId: child.pid as number })
  const own = presence()
  await own.reserve(everything)
  removeRecord(runtimeDir, 'busy')
  let isOver = false
  const waiting = own.waitForMemory().finally(() => {
    isOver = true
  })

  // Longer than one poll interval.
  await delay(300)
  expect(isOver).toBe(false)
  child.kill()

  expect(await waiting).toBe(true)
})

test('waits for no process that is waiting or idle, and no longer than the timeout', async () => {
  await other('waiting', { state: 'waiting' })
  const own = presence(300)
  await own.reserve(everything)
  expect(await own.waitForMemory()).toBe(false)

  await other('busy', { state: 'busy' })
  await own.reserve(everything)
  expect(await own.waitForMemory()).toBe(false)
})

test('ignores a process that died without removing its record', async () => {
  const before = await presence().reserve(0)
  await other('dead', { processId: 2 ** 31 - 1, reservedBytes: before.total })

  expect((await presence().reserve(0)).free).toBeGreaterThan(0)
})

test('counts busy processes while it is busy', async () => {
  const own = presence()
  own.onLoaded(0, 0)
  await other('busy', { state: 'busy' })
  await other('idle', { state: 'idle' })
  const counts: number[] = []
  own.watchBusy((busy) => counts.push(busy))

  own.onCall()
  await expect.poll(() => counts.at(-1), { timeout: 5_000 }).toBe(2)
  await other('loading', { state: 'loading' })
  await expect.poll(() => counts.at(-1), { timeout: 5_000 }).toBe(3)
  own.end()
})

test('busy processes share the cores, with at least one each', () => {
  const cores = availableParallelism()

  expect(coresPerProcess(1)).toBe(cores)
  expect(coresPerProcess(2)).toBe(Math.max(1, Math.floor(cores / 2)))
  expect(coresPerProcess(10 * cores)).toBe(1)
})
