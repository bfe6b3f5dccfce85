import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Token } from 'node-llama-cpp'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { openSnapshotStore } from './open-snapshots.ts'
import { type Snapshot, SnapshotStore, snapshotLength } from './snapshots.ts'
import type { StateFile } from './state-files.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'snapshots-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const tokens = (length: number, first = 0): Token[] =>
  Array.from({ length }, (_, index) => (first + index) as Token)
const state = (length: number, first = 0) => ({
  tenant: 'ann',
  tokens: tokens(length, first),
  isDeterministic: true,
  pieceEnds: [] as number[],
})
const wish = (length: number, first = 0) => ({
  tenant: 'ann',
  prompt: tokens(length, first),
  isDeterministic: false,
  pieceEnds: [] as number[],
})

/** Writes a state of this many bytes, like a decoder. */
const bytes =
  (count: number) =>
  async (file: string): Promise<number> => {
    await writeFile(file, Buffer.alloc(count, 1))
    return count
  }
/** Loads a snapshot. Returns the result, and the number of bytes that the decoder read. */
async function load(snapshots: SnapshotStore, snapshot: Snapshot | undefined) {
  if (!snapshot) throw new Error('Nothing was found.')
  let seen: number | undefined
  const loaded = await snapshots.load(snapshot, async (file) => {
    seen = (await readFile(file)).length
    return snapshot.tokens.length
  })
  return [loaded, seen]
}

test('the snapshot length is the end of a chunk, some tokens before the end of the prompt', () => {
  expect([0, 70, 72, 135, 136, 200].map((length) => snapshotLength(length, 64))).toEqual([
    0, 0, 64, 64, 128, 192,
  ])
})

test('a snapshot is found by a prompt with the same prefix, and loaded', async () => {
  const snapshots = new SnapshotStore(folder, 1_000)
  await snapshots.save(state(20), bytes(100))
  await snapshots.save(state(30), bytes(200))

  const found = snapshots.findLongest(wish(40))

  expect(found?.tokens).toHaveLength(30)
  expect(await load(snapshots, found)).toEqual([true, 200])
  expect(snapshots.findLongest(wish(30))?.tokens).toHaveLength(20)
  expect(snapshots.findLongest(wish(20))).toBeUndefined()
  expect(snapshots.findLongest(wish(40, 1))).toBeUndefined()
})

test('tenants share nothing', async () => {
  const snapshots = new SnapshotStore(folder, 1_000)
  await snapshots.save(state(20), bytes(100))

  expect(snapshots.findLongest({ ...wish(40), tenant: 'ben' })).toBeUndefined()
})

test('a deterministic request gets deterministic snapshots only', async () => {
  const snapshots = new SnapshotStore(folder, 1_000)
  const seeded = { ...wish(40), isDeterministic: true }
  await snapshots.save({ ...state(20), isDeterministic: false }, bytes(100))
  expect(snapshots.findLongest(wish(40))).toBeDefined()
  expect(snapshots.findLongest(seeded)).toBeUndefined()

  await snapshots.save(state(20), bytes(100))

  expect(snapshots.findLongest(seeded)).toBeDefined()
  expect(snapshots.sizeBytes).toBe(100)
  expect(readdirSync(folder)).toHaveLength(1)
})

test('the same state is not saved twice', async () => {
  const snapshots = new SnapshotStore(folder, 1_000)
  await snapshots.save(state(20), bytes(100))

  await snapshots.save(state(20), () => Promise.reject(new Error('It is written again.')))

  expect(await load(snapshots, snapshots.findLongest(wish(40)))).toEqual([true, 100])
})

test('the least recently used snapshot is evicted when the budget is exceeded', async () => {
  const snapshots = new SnapshotStore(folder, 300)
  for (const first of [100, 200, 300]) await snapshots.save(state(20, first), bytes(100))
  await load(snapshots, snapshots.findLongest(wish(40, 100)))

  await snapshots.save(state(20, 400), bytes(150))

  expect([100, 200, 300, 400].map((first) => snapshots.findLongest(wish(40, first)) !== undefined)).toEqual([
    true,
    false,
    false,
    true,
  ])
  expect(snapshots.sizeBytes).toBe(250)
  expect(readdirSync(folder)).toHaveLength(2)
})

test('a state that exceeds the budget is not saved, and not tried again', async () => {
  const snapshots = new SnapshotStore(folder, 300)
  await snapshots.save(state(20), bytes(100))
  await snapshots.save(state(40, 100), bytes(301))
  let tries = 0
  await snapshots.save(state(50, 200), async () => ++tries)

  expect(tries).toBe(0)
  expect(snapshots.findLongest(wish(60, 100))).toBeUndefined()
  expect(snapshots.findLongest(wish(40))).toBeDefined()
  expect(readdirSync(folder)).toHaveLength(1)
})

test('a snapshot at a breakpoint stays when others need room, and as long as it is used', async () => {
  let clock = 1
  const snapshots = new SnapshotStore(folder, 300, { now: () => clock })
  const minutes = (count: number): void => {
    clock += count * 60_000
  }
  const has = (first: number): boolean => snapshots.findLongest(wish(40, first)) !== undefined
  await snapshots.save({ ...state(20, 100), lifetime: '5m' }, bytes(100))
  await snapshots.save({ ...state(20, 200), lifetime: '1h' }, bytes(100))
  await snapshots.save(state(20, 300), bytes(100))
  expect(await snapshots.save(state(20, 400), bytes(150))).toBe(false)
  expect(await snapshots.save(state(20, 500), bytes(100))).toBe(true)
  expect([100, 200, 300, 500].map(has)).toEqual([true, true, false, true])

  minutes(4)
  expect(snapshots.cachedPrefixLength('ann', tokens(40, 100), 30)).toBe(20)
  snapshots.renew('ann', tokens(40, 100), 30)
  minutes(4)
  expect([100, 200, 500].map(has)).toEqual([true, true, false])
  minutes(2)
  expect([100, 200].map(has)).toEqual([false, true])
  minutes(51)
  expect(has(200)).toBe(false)
  await snapshots.save(state(20, 600), bytes(300))
  expect(readdirSync(folder)).toHaveLength(1)
})

test('the longest prefix that is cached for a breakpoint is found per tenant, up to a limit', async () => {
  const snapshots = new SnapshotStore(folder, 1_000)
  await snapshots.save({ ...state(20), lifetime: '5m' }, bytes(100))
  await snapshots.save({ ...state(30), lifetime: '5m' }, bytes(100))
  await snapshots.save(state(35), bytes(100))
  const leased = (tenant: string, limit: number): number =>
    snapshots.cachedPrefixLength(tenant, tokens(40), limit)

  expect([leased('ann', 39), leased('ann', 29), leased('ann', 19), leased('ben', 39)]).toEqual([30, 20, 0, 0])
})

test('a deterministic state with other piece ends replaces the saved state', async () => {
  const snapshots = new SnapshotStore(folder, 1_000)
  const seeded = (pieceEnds: number[]) =>
    snapshots.findLongest({ ...wish(40), isDeterministic: true, pieceEnds })
  await snapshots.save({ ...state(20), pieceEnds: [20] }, bytes(100))
  expect(
    [seeded([20]), seeded([20, 30]), seeded([]), seeded([10, 20])].map((one) => one !== undefined),
  ).toEqual([true, true, false, false])

  expect(await snapshots.save({ ...state(20), pieceEnds: [10, 20] }, bytes(120))).toBe(true)

  expect([seeded([20]), seeded([10, 20])].map((one) => one !== undefined)).toEqual([false, true])
  expect(snapshots.sizeBytes).toBe(120)
})

/** Changes to a file of 100 bytes that the decoder must not see. */
const damages: [string, (file: string) => void][] = [
  ['overwritten', (file) => writeFileSync(file, Buffer.alloc(100, 2))],
  ['changed in one byte', (file) => writeFileSync(file, Buffer.alloc(1, 2), { flag: 'r+' })],
  ['changed, with its old date,', changeWithOldDate],
  ['cut off', (file) => truncateSync(file, 99)],
  ['extended', (file) => appendFileSync(file, Buffer.alloc(1))],
  ['foreign', (file) => writeFileSync(file, Buffer.alloc(4_000, 3))],
  ['empty', (file) => writeFileSync(file, '')],
  ['replaced by a copy with its date', replaceByCopy],
  ['replaced by a link to itself', replaceByLink],
  ['gone', (file) => rmSync(file)],
  [
    'a folder',
    (file) => {
      rmSync(file)
      mkdirSync(file)
    },
  ],
]

function changeWithOldDate(file: string): void {
  const { atime, mtime, ctimeMs } = statSync(file)
  // Within a step of the file system's clock, the change could not be noticed.
  while (statSync(file).ctimeMs === ctimeMs) writeFileSync(file, Buffer.alloc(100, 2))
  utimesSync(file, atime, mtime)
}

function replaceByCopy(file: string): void {
  const { atime, mtime } = statSync(file)
  copyFileSync(file, `${file}-`)
  utimesSync(`${file}-`, atime, mtime)
  renameSync(`${file}-`, file)
}

function replaceByLink(file: string): void {
  renameSync(file, `${file}-`)
  symlinkSync(`${file}-`, file)
}

test.each(damages)('a file that is %s is dropped before the decoder sees it', async (_, damage) => {
  const snapshots = new SnapshotStore(folder, 1_000)
  await snapshots.save(state(20), bytes(100))
  const found = snapshots.findLongest(wish(40))
  damage(found?.file ?? '')

  expect(await load(snapshots, found)).toEqual([false, undefined])

  expect(snapshots.findLongest(wish(40))).toBeUndefined()
  expect(snapshots.sizeBytes).toBe(0)
  expect(existsSync(found?.file ?? '')).toBe(false)
})

test('the date of a state file is in the past, so that a change in the same step of the clock is noticed', async () => {
  const snapshots = new SnapshotStore(folder, 1_000)
  await snapshots.save(state(20), bytes(100))

  const { mtimeMs } = statSync(snapshots.findLongest(wish(40))?.file ?? '')
  expect(Date.now() - mtimeMs).toBeGreaterThan(30_000)
})

test('a state that is loaded again and again does not count as changed', async () => {
  const snapshots = new SnapshotStore(folder, 1_000)
  await snapshots.save(state(20), bytes(100))

  for (let call = 0; call < 3; call++)
    expect(await load(snapshots, snapshots.findLongest(wish(40)))).toEqual([true, 100])
})

test('a save and a load begin at once, whatever the size of the file, and count as progress', async () => {
  const size = 16 * 2 ** 20
  let progress = 0
  const snapshots = new SnapshotStore(folder, 2 * size, { onProgress: () => progress++ })
  const hasBegun: string[] = []
  const begin = async (what: string, result: number): Promise<number> => {
    hasBegun.push(what)
    return result
  }

  const saving = snapshots.save(state(20), (file) => {
    writeFileSync(file, Buffer.alloc(size, 1))
    return begin('save', size)
  })
  expect(hasBegun).toEqual(['save'])
  await saving
  const loading = snapshots.load(snapshots.findLongest(wish(40)) as Snapshot, () => begin('load', 20))
  expect(hasBegun).toEqual(['save', 'load'])

  expect(await loading).toBe(true)
  expect(progress).toBe(2)
})

describe('a disk that needs longer than the watchdog waits', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  test('counts as progress each second while it saves and loads, and not any more when it is stuck', async () => {
    let progress = 0
    const sizeOf = (length: number): number => length * 10e6
    const snapshots = new SnapshotStore(folder, 1e9, { sizeOf, onProgress: () => progress++ })
    /** Ends after this many seconds. */
    const transfer = async (seconds: number, result: number): Promise<number> => {
      for (let second = 1; second <= seconds; second++) vi.advanceTimersByTime(1_000)
      return result
    }
    const write = async (file: string): Promise<number> => {
      await writeFile(file, 'small')
      return transfer(40, 5)
    }

    expect(await snapshots.save(state(20), write)).toBe(true)
    expect(progress).toBe(40 + 1)
    const found = snapshots.findLongest(wish(40)) as Snapshot
    expect(await snapshots.load(found, () => transfer(30, 20))).toBe(true)
    expect(progress).toBe(41 + 30 + 1)

    progress = 0
    // A minute, and 10 s for 200 MB.
    await snapshots.save(state(20, 500), async () => {
      await transfer(1_000, 0)
      throw new Error('EIO')
    })
    expect(progress).toBe(70)
    expect(vi.getTimerCount()).toBe(0)
  })
})

test.each<[string, () => Promise<number>]>([
  ['refuses', () => Promise.reject(new Error('not mine'))],
  ['loads only in part', async () => 19],
])('a state that the decoder %s is dropped', async (_, read) => {
  const snapshots = new SnapshotStore(folder, 1_000)
  await snapshots.save(state(20), bytes(100))

  expect(await snapshots.load(snapshots.findLongest(wish(40)) as Snapshot, read)).toBe(false)

  expect(snapshots.findLongest(wish(40))).toBeUndefined()
})

test.each<[string, (file: string) => Promise<number>]>([
  ['at once', () => Promise.reject(new Error('ENOSPC'))],
  [
    'in the middle',
    async (file) => {
      await writeFile(file, 'half')
      throw new Error('ENOSPC')
    },
  ],
  [
    'at the last bytes, without an error,',
    async (file) => {
      await writeFile(file, Buffer.alloc(99))
      return 100
    },
  ],
])('a disk that is full %s leaves no file, and keeps earlier snapshots', async (_, write) => {
  const snapshots = new SnapshotStore(folder, 1_000)
  await snapshots.save(state(20), bytes(100))

  await snapshots.save(state(20, 100), write)

  expect(snapshots.findLongest(wish(40, 100))).toBeUndefined()
  expect(await load(snapshots, snapshots.findLongest(wish(40)))).toEqual([true, 100])
  expect(readdirSync(folder)).toHaveLength(1)
})

describe('if the size of states is known', () => {
  const sizeOf = (length: number): number => 10 * length

  test('a state that exceeds the budget is not written', async () => {
    const snapshots = new SnapshotStore(folder, 300, { sizeOf })
    let writes = 0
    const write = async (file: string): Promise<number> => {
      writes++
      return bytes(300)(file)
    }

    expect([snapshots.canSave(30), snapshots.canSave(31)]).toEqual([true, false])
    expect(await snapshots.save(state(31), write)).toBe(false)
    expect(await snapshots.suspend(31, write)).toBeUndefined()
    expect(await snapshots.save(state(30), write)).toBe(true)
    expect(writes).toBe(1)
  })

  test('a state for which snapshots at breakpoints leave no room is not written', async () => {
    const snapshots = new SnapshotStore(folder, 300, { sizeOf })
    await snapshots.save({ ...state(20), lifetime: '5m' }, bytes(200))

    expect(await snapshots.save(state(20, 100), () => Promise.reject(new Error('It is written.')))).toBe(
      false,
    )

    // The rejection would stop all saves for a time.
    expect(snapshots.canSave(10)).toBe(true)
    expect(snapshots.findLongest(wish(40))).toBeDefined()
  })

  test('room is made before a state is written, so that the files never exceed the budget', async () => {
    const snapshots = new SnapshotStore(folder, 300, { sizeOf })
    await snapshots.save(state(20), bytes(200))

    await snapshots.save(state(20, 100), async (file) => {
      // Its own file is empty.
      expect(readdirSync(folder).map((name) => statSync(join(folder, name)).size)).toEqual([0])
      return bytes(200)(file)
    })

    expect(snapshots.findLongest(wish(40, 100))).toBeDefined()
    expect(snapshots.sizeBytes).toBe(200)
  })

  test('a state for which the disk has no space is not written until space is free, which is checked each second', async () => {
    let free = 199
    let now = 1
    const reports: unknown[] = []
    const options = {
      ...{ sizeOf, now: () => now, measureFree: () => free },
      onWriteFailure: (failure: unknown) => reports.push(failure),
    }
    const snapshots = new SnapshotStore(folder, 300, options)
    const never = () => Promise.reject(new Error('It is written.'))

    expect(await snapshots.save(state(20), never)).toBe(false)
    expect(snapshots.canSave(1)).toBe(false)
    expect(await snapshots.save(state(20), never)).toBe(false)
    free = 200
    expect(snapshots.canSave(20)).toBe(false)
    now += 1_000
    expect(snapshots.canSave(20)).toBe(true)
    expect(await snapshots.save(state(20), bytes(200))).toBe(true)
    expect(reports).toEqual([{ folder, freeBytes: 199 }])

    // After a success, the next failure is reported again.
    free = 0
    now += 1_000
    await snapshots.save(state(20, 100), never)
    expect(reports).toHaveLength(2)
  })
})

test('after a failed write, nothing is written for ten seconds, which is reported once', async () => {
  let now = 1
  const reports: unknown[] = []
  const onWriteFailure = (failure: unknown): void => void reports.push(failure)
  const snapshots = new SnapshotStore(folder, 1_000, { now: () => now, onWriteFailure })
  let writes = 0
  const fail = (): Promise<number> => {
    writes++
    return Promise.reject(new Error('ENOSPC'))
  }

  for (let call = 0; call < 100; call++) {
    expect(await snapshots.save(state(20, call), fail)).toBe(false)
    expect(await snapshots.suspend(20, fail)).toBeUndefined()
  }
  expect(writes).toBe(1)
  expect(snapshots.canSave(1)).toBe(false)

  now += 10_000
  await snapshots.save(state(20), fail)
  expect(writes).toBe(2)
  expect(reports).toHaveLength(1)

  now += 10_000
  expect(await snapshots.save(state(20), bytes(100))).toBe(true)
  await snapshots.save(state(20, 100), fail)
  expect(reports).toHaveLength(2)
})

test('a removed folder is created again, and its states are evaluated again', async () => {
  const snapshots = new SnapshotStore(folder, 1_000)
  await snapshots.save(state(20), bytes(100))
  rmSync(folder, { recursive: true })

  const lost = await load(snapshots, snapshots.findLongest(wish(40)))
  const isKept = await snapshots.save(state(20), bytes(100))

  expect(lost).toEqual([false, undefined])
  expect(isKept).toBe(true)
  expect(await load(snapshots, snapshots.findLongest(wish(40)))).toEqual([true, 100])
  expect(statSync(folder).mode & 0o777).toBe(0o700)
})

test('without a folder, nothing is saved and nothing thrown', async () => {
  const snapshots = new SnapshotStore(join(folder, 'gone', 'snapshots'), 1_000)

  expect(await snapshots.save(state(20), bytes(100))).toBe(false)
})

test('without write permission, nothing is saved and nothing thrown', async () => {
  const file = join(folder, 'file')
  await writeFile(file, '')
  const snapshots = new SnapshotStore(file, 1_000)

  await snapshots.save(state(20), bytes(100))

  expect(snapshots.findLongest(wish(40))).toBeUndefined()
})

test('close removes all files', async () => {
  const snapshots = openSnapshotStore(folder)
  await snapshots.save(state(20), bytes(100))
  const file = snapshots.findLongest(wish(40))?.file ?? ''
  expect(existsSync(file)).toBe(true)
  if (process.platform !== 'win32') expect(statSync(join(file, '..')).mode & 0o777).toBe(0o700)

  snapshots.close()

  expect(existsSync(join(file, '..'))).toBe(false)
})

test.runIf(existsSync('/dev/shm'))('removes the folder of a killed process from the RAM disk', () => {
  // The process id is higher than any real one.
  const left = mkdtempSync('/dev/shm/modelmount-99999999-')
  const alive = mkdtempSync(`/dev/shm/modelmount-${process.ppid}-`)

  openSnapshotStore(folder).close()

  const stays = existsSync(alive)
  rmSync(alive, { recursive: true })
  expect([existsSync(left), stays]).toEqual([false, true])
})

describe('the state of a suspended sequence', () => {
  const resume = (snapshots: SnapshotStore, suspended: StateFile | undefined, tokenCount = 20) =>
    snapshots.resume(suspended as StateFile, tokenCount, async (file) => {
      expect((await readFile(file)).length).toBe(suspended?.sizeBytes)
      return tokenCount
    })

  test('is loaded once, and its file is removed while the next step runs', async () => {
    const snapshots = new SnapshotStore(folder, 1_000)
    const suspended = await snapshots.suspend(20, bytes(100))

    expect(await resume(snapshots, suspended)).toBe(true)
    await nextTurn()
    expect(readdirSync(folder)).toEqual([])
    expect(await resume(snapshots, suspended)).toBe(false)
  })

  test.each(damages)('is not loaded if the file is %s', async (_, damage) => {
    const snapshots = new SnapshotStore(folder, 1_000)
    const suspended = await snapshots.suspend(20, bytes(100))
    damage(suspended?.file ?? '')

    let loads = 0
    expect(await snapshots.resume(suspended as StateFile, 20, async () => ++loads)).toBe(false)
    expect(loads).toBe(0)
    await nextTurn()
    expect(existsSync(suspended?.file ?? '')).toBe(false)
  })

  test('evicts snapshots, and is not evicted by them', async () => {
    const snapshots = new SnapshotStore(folder, 300)
    await snapshots.save({ ...state(20, 100), lifetime: '1h' }, bytes(200))

    const suspended = await snapshots.suspend(20, bytes(150))
    await snapshots.save({ ...state(20, 200), lifetime: '1h' }, bytes(200))
    await snapshots.save(state(20, 300), bytes(150))

    expect([100, 200, 300].map((first) => snapshots.findLongest(wish(40, first)) !== undefined)).toEqual([
      false,
      false,
      true,
    ])
    expect(await resume(snapshots, suspended)).toBe(true)
  })

  test('is not saved if the other suspended states leave no room', async () => {
    const snapshots = new SnapshotStore(folder, 300)
    const first = await snapshots.suspend(20, bytes(200))

    expect(await snapshots.suspend(20, bytes(200))).toBeUndefined()
    expect(readdirSync(folder)).toHaveLength(1)

    snapshots.discard(first as StateFile)
    snapshots.discard(first as StateFile)
    expect(await snapshots.suspend(20, bytes(300))).toBeDefined()
    expect(await snapshots.suspend(20, bytes(1))).toBeUndefined()
  })

  test('is not saved if the disk is full', async () => {
    const snapshots = new SnapshotStore(folder, 1_000)

    expect(await snapshots.suspend(20, () => Promise.reject(new Error('ENOSPC')))).toBeUndefined()
    expect(await snapshots.suspend(20, async (file) => (await bytes(99)(file)) + 1)).toBeUndefined()
    expect(readdirSync(folder)).toEqual([])
  })

  test('is removed with all other files', async () => {
    const snapshots = new SnapshotStore(join(folder, 'private'), 1_000)
    await snapshots.suspend(20, bytes(100))

    snapshots.close()

    expect(readdirSync(folder)).toEqual([])
  })
})
