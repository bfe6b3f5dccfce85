import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { ProcessRecord } from './process-config.ts'
import {
  getPidNamespace,
  isAlive,
  killProcess,
  RuntimeDir,
  readRecord,
  readRecords,
  removeRecord,
  socketAddressOf,
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
  namespace: getPidNamespace(),
  folder: '/run/process',
  state: 'idle',
  since: 5,
  reservedBytes: 7,
  sizeBytes: 9,
}
const onUnix = test.skipIf(process.platform === 'win32')

test('two apps with the same runtime dir share it, also after its removal', () => {
  const path = join(temporary, 'deep', 'run')
  const [one, other] = [new RuntimeDir(path), new RuntimeDir(path)]

  expect([one.ensure(), other.ensure()]).toEqual([path, path])
  rmSync(path, { recursive: true })

  expect(one.ensure()).toBe(path)
  expect(statSync(path).mode & 0o777).toBe(0o700)
})

test('without a setting, the apps of one user share a temporary folder', () => {
  expect(new RuntimeDir(undefined).ensure()).toBe(new RuntimeDir(undefined).ensure())
  expect(new RuntimeDir(undefined).ensure().startsWith(temporary)).toBe(true)
})

onUnix('a public folder, a symbolic link and a path that is too long for a socket are not used', () => {
  const open = join(temporary, 'open')
  mkdirSync(open, { mode: 0o700 })
  symlinkSync(open, join(temporary, 'link'))
  const alone = [join(temporary, 'link'), join(temporary, 'x'.repeat(70))].map((path) => new RuntimeDir(path))
  chmodSync(open, 0o750)

  for (const folder of [...alone, new RuntimeDir(open)]) {
    const path = folder.ensure()

    expect(path.startsWith(join(temporary, 'modelmount-'))).toBe(true)
    expect(folder.ensure(), 'the same each time').toBe(path)
    expect(statSync(path).mode & 0o777).toBe(0o700)
  }
})

onUnix('the address of a process is short enough for a socket', () => {
  const longest = new RuntimeDir(`/tmp/${'x'.repeat(70)}`).ensure()

  expect(Buffer.byteLength(socketAddressOf(longest, 'f'.repeat(16)))).toBeLessThan(100)
  rmSync(longest, { recursive: true })
})

test('a record is read as written, until it is removed', () => {
  writeRecord(temporary, 'a', record)
  writeRecord(temporary, 'b', { ...record, state: 'busy' })

  expect(readRecord(temporary, 'a')).toEqual(record)
  expect([...readRecords(temporary).keys()]).toEqual(['a', 'b'])
  removeRecord(temporary, 'a')
  expect([...readRecords(temporary).keys()]).toEqual(['b'])
})

test('hasProcess finds live processes, and none in an inaccessible folder', () => {
  const path = join(temporary, 'run')
  const folder = new RuntimeDir(path)
  writeRecord(folder.ensure(), 'alive', record)
  writeRecord(path, 'dead', { ...record, processId: 2 ** 31 - 1 })

  expect(['alive', 'dead', 'unknown'].map((name) => folder.hasProcess(name))).toEqual([true, false, false])
  vi.stubEnv('TMPDIR', '/dev/null')
  expect(new RuntimeDir('/dev/null/run').hasProcess('alive')).toBe(false)
})

test.each(['', '{', '[]', '{"processId":0}'])('the invalid record %j is ignored', (text) => {
  writeFileSync(join(temporary, 'a.json'), text)

  expect(readRecord(temporary, 'a')).toBeUndefined()
  expect(readRecords(temporary).size).toBe(0)
})

test('isAlive checks the process id; in another PID namespace it is true, and killProcess does nothing', () => {
  const kill = vi.spyOn(process, 'kill')
  // No process has the largest process id.
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
