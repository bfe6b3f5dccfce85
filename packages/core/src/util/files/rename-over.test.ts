import { expect, test, vi } from 'vitest'
import { isOpenElsewhere, type RenameSystem, renameOver, renameOverSync } from './rename-over.ts'

const failure = (code: string): Error => Object.assign(new Error(code), { code })

/** A `rename` that fails `count` times. */
const failing = (code: string, count: number) =>
  vi.fn((_from: string, _to: string): void => {
    if (count-- > 0) throw failure(code)
  })
const later = (platform: NodeJS.Platform, rename: (from: string, to: string) => void) =>
  ({ platform, rename: async (from, to) => rename(from, to) }) satisfies RenameSystem<Promise<void>>

test.each(['EPERM', 'EACCES', 'EBUSY'])('on Windows, repeats a rename that fails with %s', async (code) => {
  const [rename, renameSync] = [failing(code, 3), failing(code, 3)]

  await renameOver('a', 'b', later('win32', rename))
  renameOverSync('a', 'b', { platform: 'win32', rename: renameSync })

  for (const calls of [rename, renameSync]) {
    expect(calls).toHaveBeenCalledTimes(4)
    expect(calls).toHaveBeenLastCalledWith('a', 'b')
  }
})

test('on Windows, other errors and lasting ones reach the caller', async () => {
  const other = failing('ENOSPC', 1)

  await expect(renameOver('a', 'b', later('win32', other))).rejects.toThrow('ENOSPC')
  expect(other).toHaveBeenCalledOnce()
  expect(() =>
    renameOverSync('a', 'b', { platform: 'win32', rename: failing('EPERM', Number.POSITIVE_INFINITY) }),
  ).toThrow('EPERM')
})

test('elsewhere, the first error reaches the caller', async () => {
  const rename = failing('EPERM', 1)

  await expect(renameOver('a', 'b', later('linux', rename))).rejects.toThrow('EPERM')
  expect(() => renameOverSync('a', 'b', { platform: 'darwin', rename: failing('EPERM', 1) })).toThrow('EPERM')
  expect(rename).toHaveBeenCalledOnce()
  expect(isOpenElsewhere(failure('EPERM'), 'linux')).toBe(false)
  expect(isOpenElsewhere(failure('EPERM'), 'win32')).toBe(true)
})
