import { mkdtemp, open, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { withFileLock } from './file-lock.ts'

let folder: string
let path: string
const { signal } = new AbortController()

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'lock-'))
  path = join(folder, 'some.lock')
})

afterEach(() => rm(folder, { recursive: true }))

/** Runs `count` tasks with the lock. Returns how many ran at the same time. */
async function mostAtOnce(count: number): Promise<number> {
  let [now, most] = [0, 0]
  await Promise.all(
    Array.from({ length: count }, () =>
      withFileLock(path, signal, async () => {
        most = Math.max(most, ++now)
        await setImmediate()
        now--
      }),
    ),
  )
  return most
}

test('runs one task at a time and leaves no file', async () => {
  expect(await mostAtOnce(8)).toBe(1)
  expect(await readdir(folder)).toEqual([])
})

test('runs one task at a time after a dead owner', async () => {
  await writeFile(path, '')
  await utimes(path, new Date(0), new Date(0))

  expect(await mostAtOnce(8)).toBe(1)
  expect(await readdir(folder)).toEqual([])
})

test('passes an error of the task on and frees the lock', async () => {
  await expect(withFileLock(path, signal, () => Promise.reject(new Error('failed')))).rejects.toThrow(
    'failed',
  )

  expect(await readdir(folder)).toEqual([])
})

test('sets the time of a new lock by the clock of this machine', async () => {
  const now = new Date('2100-01-01')
  vi.useFakeTimers({ now, toFake: ['Date'] })
  try {
    expect((await withFileLock(path, signal, () => stat(path))).mtime).toEqual(now)
  } finally {
    vi.useRealTimers()
  }
})

test('rejects when the signal aborts', async () => {
  await writeFile(path, '')
  const controller = new AbortController()

  const waiting = withFileLock(path, controller.signal, async () => 'done')
  controller.abort(new Error('left'))

  await expect(waiting).rejects.toThrow('left')
})

test('reports a lost lock and keeps the file of the new owner', async () => {
  const lost = withFileLock(path, signal, async (lost) => {
    await rm(path)
    await writeFile(path, '')
    await new Promise((resolve) => lost.addEventListener('abort', resolve))
    return lost.aborted
  })

  expect(await lost).toBe(true)
  expect(await readdir(folder)).toEqual(['some.lock'])
})

test('on Windows, waits for a removed lock that another process has still open, but not for ever', async () => {
  const refused = Object.assign(new Error('EPERM'), { code: 'EPERM' })
  const refusing = (count: number, platform: NodeJS.Platform) => ({
    platform,
    open: (file: string, flags: 'wx') => (count-- > 0 ? Promise.reject(refused) : open(file, flags)),
  })
  const lock = (count: number, platform: NodeJS.Platform = 'win32') =>
    withFileLock(path, signal, async () => 'locked', refusing(count, platform))

  expect(await lock(3)).toBe('locked')
  await expect(lock(Number.POSITIVE_INFINITY)).rejects.toBe(refused)
  await expect(lock(1, 'linux')).rejects.toBe(refused)
  expect(await readdir(folder)).toEqual([])
})
