import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { ProcessRecord } from './protocol.ts'
import {
  addressOf,
  isAlive,
  killProcess,
  ownNamespace,
  RunFolder,
  readRecord,
  readRecords,
  removeRecord,
  writeRecord,
} from './runtime-dir.ts'

let temporary: string

beforeEach(() => {
  temporary = mkdtempSync(join(tmpdir(), 't-'))
  vi.stubEnv('TMPDIR', temporary)
})

afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(temporary, { recursive: true, force: true })
})

const record: ProcessRecord = {
  processId: process.pid,
  namespace: ownNamespace(),
  folder: '/run/process',
  state: 'idle',
  since: 5,
  reservedBytes: 7,
  sizeBytes: 9,
}
const onUnix = test.skipIf(process.platform === 'win32')

test('two apps that name the same folder meet there, also when it was removed meanwhile', () => {
  const path = join(temporary, 'deep', 'run')
  const [one, other] = [new RunFolder(path), new RunFolder(path)]

  expect([one.enter(), other.enter()]).toEqual([path, path])
  rmSync(path, { recursive: true })

  expect(one.enter()).toBe(path)
  expect(statSync(path).mode & 0o777).toBe(0o700)
})

test('where no folder is named, the apps of one user meet in one for temporary files', () => {
  expect(new RunFolder(undefined).enter()).toBe(new RunFolder(undefined).enter())
  expect(new RunFolder(undefined).enter().startsWith(temporary)).toBe(true)
})

onUnix('one that others can enter, that is a link, or that is too long for a socket, is not used', () => {
  const open = join(temporary, 'open')
  mkdirSync(open, { mode: 0o700 })
  symlinkSync(open, join(temporary, 'link'))
  const alone = [join(temporary, 'link'), join(temporary, 'x'.repeat(70))].map((path) => new RunFolder(path))
  chmodSync(open, 0o750)

  for (const folder of [...alone, new RunFolder(open)]) {
    const path = folder.enter()

    expect(path.startsWith(join(temporary, 'modelmount-'))).toBe(true)
    expect(folder.enter(), 'the same each time').toBe(path)
    expect(statSync(path).mode & 0o777).toBe(0o700)
  }
})

onUnix('the address of a process fits into that of a socket', () => {
  const longest = new RunFolder(`/tmp/${'x'.repeat(70)}`).enter()

  expect(Buffer.byteLength(addressOf(longest, 'f'.repeat(16)))).toBeLessThan(100)
  rmSync(longest, { recursive: true })
})

test('a record is read as it was written, until it is removed', () => {
  writeRecord(temporary, 'a', record)
  writeRecord(temporary, 'b', { ...record, state: 'busy' })

  expect(readRecord(temporary, 'a')).toEqual(record)
  expect([...readRecords(temporary).keys()]).toEqual(['a', 'b'])
  removeRecord(temporary, 'a')
  expect([...readRecords(temporary).keys()]).toEqual(['b'])
})

test('a folder has the processes that live, and none where it cannot be entered', () => {
  const path = join(temporary, 'run')
  const folder = new RunFolder(path)
  writeRecord(folder.enter(), 'alive', record)
  writeRecord(path, 'dead', { ...record, processId: 2 ** 31 - 1 })

  expect(['alive', 'dead', 'unknown'].map((name) => folder.has(name))).toEqual([true, false, false])
  vi.stubEnv('TMPDIR', '/dev/null')
  expect(new RunFolder('/dev/null/run').has('alive')).toBe(false)
})

test.each(['', '{', '[]', '{"processId":0}'])('a record that says %j is none', (text) => {
  writeFileSync(join(temporary, 'a.json'), text)

  expect(readRecord(temporary, 'a')).toBeUndefined()
  expect(readRecords(temporary).size).toBe(0)
})

test('whether a process lives is known by its id, but not across namespaces of ids, where nobody is killed either', () => {
  const kill = vi.spyOn(process, 'kill')
  // No process has the largest id.
  const dead = { ...record, processId: 2 ** 31 - 1 }

  expect(isAlive(record)).toBe(true)
  expect(isAlive(dead)).toBe(false)
  expect(isAlive({ ...dead, namespace: 'pid:[1]' })).toBe(true)
  kill.mockClear()
  killProcess({ ...record, namespace: 'pid:[1]' })
  expect(kill).not.toHaveBeenCalled()
  killProcess(dead)
  expect(kill).toHaveBeenCalledWith(dead.processId, 'SIGKILL')
  kill.mockRestore()
})
