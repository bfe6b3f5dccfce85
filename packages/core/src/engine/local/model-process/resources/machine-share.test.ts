import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
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
import type { MemorySpace } from './machine-memory.ts'
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
  new MachineShare({ runtimeDir, name: 'own', folder: join(runtimeDir, 'own'), cards: {} }, waitLimitMs)
const everything = Number.MAX_SAFE_INTEGER
const noCard = async (): Promise<MemorySpace> => ({ free: 0, total: 0 })
/** Reserves RAM on a machine without a graphics card. */
const reserve = async (own: MachineShare, ram: number): Promise<MemorySpace> =>
  (await own.reserve({ ram, vram: 0 }, noCard)).ram
const onWait = (): void => {}
const recordOf = (name: string): ProcessRecord | undefined => readRecord(runtimeDir, name)

function writeOther(name: string, record: Partial<ProcessRecord>): void {
  const place = { processId: process.pid, namespace: getPidNamespace(), folder: join(runtimeDir, name) }
  const memory = { reservedBytes: 0, sizeBytes: 0, reservedVramBytes: 0, vramBytes: 0, cards: {} }
  const nothing = { state: 'idle', since: 0, ...memory } as const
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

  own.onLoaded({ ram: 9, vram: 4, mapped: 7 })
  await expect
    .poll(() => recordOf('own'))
    .toMatchObject({
      ...{ state: 'idle', sizeBytes: 9, reservedBytes: 7 },
      ...{ vramBytes: 4, reservedVramBytes: 0 },
    })
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
  const { free, total } = await reserve(presence(), everything)

  expect(asked).toEqual(['old: yield', 'young: yield'])
  // The wait ends when the processes close their sockets, although they send a message first.
  expect(performance.now() - askedAt).toBeLessThan(4_000)
  expect(free).toBeLessThanOrEqual(total)
})

test('asks no process while there is room, and counts reservations of others as used', async () => {
  const before = await reserve(presence(), 1_000)
  await other('idle', { reservedBytes: 1e9 })

  const after = await reserve(presence(), 1_000)

  expect(asked).toEqual([])
  // Other programs allocate and free memory meanwhile.
  expect(before.free - after.free).toBeGreaterThan(0.5e9)
})

test('asks no process to end if that would free too little while others are busy', async () => {
  await other('busy', { state: 'busy' })
  await other('idle', { sizeBytes: 1_000 })

  await reserve(presence(), everything)

  expect(asked).toEqual([])
})

test('drops its reservation while it waits for a busy process to become idle', async () => {
  await other('busy', { state: 'busy' })
  const own = presence()
  await reserve(own, everything)

  const waiting = own.waitForMemory(onWait)

  expect(recordOf('own')).toMatchObject({ state: 'waiting', reservedBytes: 0 })
  writeOther('busy', { state: 'idle' })
  expect(await waiting).toBe(true)
  await reserve(own, 0)
  expect(recordOf('own')).toMatchObject({ state: 'loading' })
})

test('counts the memory of a process that shuts down until it has ended', async () => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1_000)'])
  await other('busy', { state: 'busy', processId: child.pid as number })
  const own = presence()
  await reserve(own, everything)
  removeRecord(runtimeDir, 'busy')
  let isOver = false
  const waiting = own.waitForMemory(onWait).finally(() => {
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
  await reserve(own, everything)
  expect(await own.waitForMemory(onWait)).toBe(false)

  await other('busy', { state: 'busy' })
  await reserve(own, everything)
  expect(await own.waitForMemory(onWait)).toBe(false)
})

test.each<[what: string, change: Partial<ProcessRecord>]>([
  ['has ended', { processId: 2 ** 31 - 1 }],
  ['has left an id that another program has now', {}],
  ['has left an id of another PID namespace', { namespace: 'pid:[1]' }],
])('ignores the memory of a process that %s', async (_what, change) => {
  const own = presence()
  const before = await reserve(own, 0)
  writeOther('dead', { ...change, state: 'busy', reservedBytes: before.total })

  expect((await reserve(own, everything)).free).toBeGreaterThan(0)
  expect(await own.waitForMemory(onWait)).toBe(false)
})

test('stops waiting when a busy process dies and leaves its record', async () => {
  await other('busy', { state: 'busy' })
  const own = presence()
  await reserve(own, everything)
  const waiting = own.waitForMemory(onWait)

  await Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve))))

  expect(await waiting).toBe(true)
  expect(recordOf('busy')).toMatchObject({ state: 'busy' })
})

test('a wait for another load does not shorten the wait for memory', async () => {
  await other('loading', { state: 'loading', reservedVramBytes: 10 })
  const own = presence(400)
  await own.reserve({ ram: everything, vram: 101 }, async () => ({ free: 100, total: 100 }))
  expect(await own.waitForVramLoads(onWait)).toBe(false)

  const waiting = own.waitForMemory(onWait)
  await delay(100)
  writeOther('loading', { state: 'idle' })

  expect(await waiting).toBe(true)
})

test('nothing is reserved when another process has taken the lock meanwhile', async () => {
  const [own, second] = [
    presence(),
    new MachineShare({ runtimeDir, name: 'second', folder: runtimeDir, cards: {} }),
  ]
  let isHeld = false
  /** Another process takes the lock, as that of a stopped process, and reserves all of the card. */
  const readVram = async (): Promise<MemorySpace> => {
    if (isHeld) {
      rmSync(join(runtimeDir, 'memory.mutex'))
      await second.reserve({ ram: 0, vram: 100 }, async () => ({ free: 100, total: 100 }))
    }
    isHeld = true
    return { free: 100, total: 100 }
  }

  await expect(own.reserve({ ram: 0, vram: 100 }, readVram)).rejects.toThrow('The lock was lost.')

  expect([recordOf('own'), recordOf('second')?.reservedVramBytes]).toEqual([undefined, 100])
})

/** Only root can mount a disk. */
const canMount = process.platform === 'linux' && process.getuid?.() === 0

test.runIf(canMount)(
  'a reservation that a full disk does not take is an error, which names the disk',
  async () => {
    const disk = mkdtempSync(join(tmpdir(), 'disk-'))
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4k,mode=700', 'none', disk])
    onTestFinished(() => {
      execFileSync('umount', ['-l', disk])
      rmdirSync(disk)
    })
    writeFileSync(join(disk, 'filler'), 'x'.repeat(4_096))
    const own = new MachineShare({ runtimeDir: disk, name: 'own', folder: disk, cards: {} })

    const reserved = reserve(own, 1_000)

    await expect(reserved).rejects.toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('the disk of its runtime folder is full'),
    })
  },
)

test('after a failed load, it holds no memory and can be asked to end', async () => {
  const own = presence()
  await own.reserve({ ram: 1_000, vram: 10 }, async () => ({ free: 10, total: 10 }))
  expect(recordOf('own')).toMatchObject({ state: 'loading', reservedBytes: 1_000, reservedVramBytes: 10 })

  own.onLoadFailed()

  const idle = { state: 'idle', reservedBytes: 0, reservedVramBytes: 0 }
  await expect.poll(() => recordOf('own')).toMatchObject(idle)
})

describe('memory of graphics cards', () => {
  /** A card on which idle processes occupy memory until they are asked to end. */
  function insertCard(total: number, releaseDelayMs = 0) {
    const card = {
      used: 0,
      read: async (): Promise<MemorySpace> => ({ free: total - card.used, total }),
      idle: async (name: string, vramBytes: number, since = 0): Promise<void> => {
        card.used += vramBytes
        await other(name, { since, vramBytes })
        servers.at(-1)?.on('connection', (socket) =>
          socket.once('data', () => {
            setTimeout(() => {
              card.used -= vramBytes
            }, releaseDelayMs)
          }),
        )
      },
    }
    return card
  }

  test('idle processes are asked to end for it, but not those that use none', async () => {
    const card = insertCard(100)
    await other('without', { since: 1 })
    await card.idle('old', 40, 2)
    await card.idle('young', 40, 3)

    const { vram } = await presence().reserve({ ram: 0, vram: 50 }, card.read)

    expect(asked).toEqual(['old: yield'])
    expect(vram).toEqual({ free: 60, total: 100 })
    expect(recordOf('own')).toMatchObject({ state: 'loading', reservedVramBytes: 50 })
  })

  test('a driver may free it some time after the process has ended', async () => {
    const card = insertCard(100, 200)
    await card.idle('one', 40, 1)
    await card.idle('two', 40, 2)

    const { vram } = await presence().reserve({ ram: 0, vram: 50 }, card.read)

    expect([asked, vram.free]).toEqual([['one: yield'], 60])
  })

  test('no process is asked to end if busy ones hold too much of it', async () => {
    const card = insertCard(100)
    card.used = 50
    await other('busy', { state: 'busy', vramBytes: 50 })
    await card.idle('idle', 20)

    const { vram } = await presence().reserve({ ram: 0, vram: 60 }, card.read)

    expect([asked, vram.free]).toEqual([[], 30])
    expect(recordOf('own')).toMatchObject({ reservedVramBytes: 0 })
  })

  test('if less memory is useful, too, idle processes are asked to end beside busy ones', async () => {
    const card = insertCard(100)
    card.used = 10
    await other('busy', { state: 'busy', vramBytes: 10 })
    await card.idle('idle', 80)

    const { vram } = await presence().reserve({ ram: 0, vram: 95, acceptsLessVram: true }, card.read)

    expect([asked, vram.free]).toEqual([['idle: yield'], 90])
  })

  test('no process is asked to end while a load may have allocated what it has reserved', async () => {
    const card = insertCard(100)
    await card.idle('idle', 20)
    await other('loading', { state: 'loading', reservedVramBytes: 40 })
    card.used += 40
    const own = presence()

    // Truly, 40 are free.
    const { vram } = await own.reserve({ ram: 0, vram: 15, acceptsLessVram: true }, card.read)

    expect([asked, vram.free]).toEqual([[], 0])
    const waiting = own.waitForVramLoads(onWait)
    writeOther('loading', { state: 'idle', vramBytes: 40 })
    expect(await waiting).toBe(true)
    expect((await own.reserve({ ram: 0, vram: 15 }, card.read)).vram.free).toBe(40)
    expect(asked).toEqual([])
  })

  test('a process that has become busy keeps its memory, and is not waited for', async () => {
    await other('idle', { vramBytes: 40 })
    // It closes the connection, and keeps its record and its socket.
    servers
      .at(-1)
      ?.removeAllListeners('connection')
      .on('connection', (socket) => socket.end())
    const startedAt = performance.now()

    await presence().reserve({ ram: 0, vram: 50 }, async () => ({ free: 10, total: 100 }))

    expect(performance.now() - startedAt).toBeLessThan(1_500)
  })

  test('processes on other cards do not count', async () => {
    const card = insertCard(100)
    const selected = (list: string): Partial<ProcessRecord> => ({ cards: { CUDA_VISIBLE_DEVICES: list } })
    await card.idle('elsewhere', 0)
    writeOther('elsewhere', { vramBytes: 40, ...selected('1') })
    await other('loading', { state: 'loading', reservedVramBytes: 50, ...selected('1,2') })
    const cards = { CUDA_VISIBLE_DEVICES: '0' }
    const own = new MachineShare({ runtimeDir, name: 'own', folder: runtimeDir, cards })

    const { vram } = await own.reserve({ ram: 0, vram: 101 }, card.read)

    expect([asked, vram.free, await own.waitForVramLoads(onWait)]).toEqual([[], 100, false])
    expect(recordOf('own')).toMatchObject({ cards })
    writeOther('loading', { state: 'loading', reservedVramBytes: 50, ...selected('1,0') })
    expect((await own.reserve({ ram: 0, vram: 0 }, card.read)).vram.free).toBe(50)
    writeOther('loading', { state: 'loading', reservedVramBytes: 50 })
    expect((await own.reserve({ ram: 0, vram: 0 }, card.read)).vram.free).toBe(50)
  })

  test('two loads at the same time do not get the same memory', async () => {
    const card = insertCard(100)
    const second = new MachineShare({
      runtimeDir,
      name: 'second',
      folder: join(runtimeDir, 'second'),
      cards: {},
    })
    const loads = [presence(), second]

    const found = await Promise.all(loads.map((load) => load.reserve({ ram: 0, vram: 60 }, card.read)))

    expect(found.map(({ vram }) => vram.free).sort()).toEqual([100, 40])
    const reserved = ['own', 'second'].map((name) => recordOf(name)?.reservedVramBytes)
    expect(reserved.sort()).toEqual([0, 60])
  })

  test('a load waits for another load on the card, but not for busy processes or loads elsewhere', async () => {
    const card = insertCard(100)
    await other('busy', { state: 'busy', vramBytes: 50 })
    await other('elsewhere', { state: 'loading' })
    const own = presence()
    await own.reserve({ ram: 0, vram: 101 }, card.read)
    expect(await own.waitForVramLoads(onWait)).toBe(false)

    await other('loading', { state: 'loading', reservedVramBytes: 10 })
    await own.reserve({ ram: 0, vram: 101 }, card.read)
    let waits = 0
    const waiting = own.waitForVramLoads(() => waits++)
    expect([waits, recordOf('own')]).toMatchObject([1, { state: 'waiting', reservedVramBytes: 0 }])
    writeOther('loading', { state: 'idle', vramBytes: 10 })

    expect(await waiting).toBe(true)
  })

  test('a load that lacks only memory of a card does not wait for processes that use none of it', async () => {
    const card = insertCard(100)
    await other('busy', { state: 'busy' })
    const own = presence()
    await own.reserve({ ram: 0, vram: 101 }, card.read)

    expect(await own.waitForMemory(onWait)).toBe(false)
  })
})

test('counts busy processes while it is busy', async () => {
  const own = presence()
  own.onLoaded({ ram: 0, vram: 0, mapped: 0 })
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
