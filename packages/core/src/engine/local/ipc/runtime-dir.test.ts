import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { ProcessRecord } from './process-config.ts'
import {
  getPidNamespace,
  isAlive,
  isRunning,
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
  reservedVramBytes: 0,
  cards: {},
  vramBytes: 0,
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

test('on Windows, a process has a named pipe of its folder, of any length and spelling', () => {
  const pipeOf = (folder: string) => socketAddressOf(folder, 'f'.repeat(16), 'win32')
  const pipe = pipeOf('C:\\Users\\Ada\\AppData\\Local\\Temp\\modelmount-Ada')

  expect(pipe).toMatch(/^\\\\\.\\pipe\\modelmount-[0-9a-f]{16}-f{16}$/)
  expect(pipeOf('c:/users/ada/AppData/Local/Temp/modelmount-ada')).toBe(pipe)
  expect(pipeOf('C:\\other')).not.toBe(pipe)
  expect(pipeOf(`C:\\${'x'.repeat(400)}`)).toHaveLength(pipe.length)
})

test('a record is read as written, until it is removed', () => {
  writeRecord(temporary, 'a', record)
  writeRecord(temporary, 'b', { ...record, state: 'busy' })

  expect(readRecord(temporary, 'a')).toEqual(record)
  expect([...readRecords(temporary).keys()]).toEqual(['a', 'b'])
  removeRecord(temporary, 'a')
  expect([...readRecords(temporary).keys()]).toEqual(['b'])
})

describe('a record', () => {
  /** Listens on the socket of a name, and stops at the end of the test. */
  async function listen(name: string): Promise<void> {
    const server = createServer((socket) => socket.destroy()).listen(socketAddressOf(temporary, name))
    await once(server, 'listening')
    onTestFinished(() => void server.close())
  }
  const running = (change: Partial<ProcessRecord> = {}) => isRunning(temporary, 'a', { ...record, ...change })
  const loadingSince = (since: number): Partial<ProcessRecord> => ({ state: 'loading', since })

  test('counts while its socket answers, also in another PID namespace', async () => {
    await listen('a')

    expect(await running()).toBe(true)
    expect(await running({ namespace: 'pid:[1]', processId: 2 ** 31 - 1 })).toBe(true)
  })

  test('does not count without a socket, even if its process id belongs to another program', async () => {
    expect(await running()).toBe(false)
    expect(await running({ namespace: 'pid:[1]' })).toBe(false)
  })

  onUnix('does not count when a killed process has left its socket', async () => {
    const path = JSON.stringify(socketAddressOf(temporary, 'a'))
    const listenAndDie = `require('net').createServer().listen(${path}, () => process.kill(process.pid, 'SIGKILL'))`
    spawnSync(process.execPath, ['-e', listenAndDie])

    expect(existsSync(socketAddressOf(temporary, 'a'))).toBe(true)
    expect(await running()).toBe(false)
  })

  test('counts for five seconds while its process starts, but not once that has ended', async () => {
    const now = Date.now()

    expect(await running(loadingSince(now))).toBe(true)
    expect(await running(loadingSince(now - 5_000))).toBe(false)
    // The clock was set back, for example by a restart of the machine.
    expect(await running(loadingSince(now + 60_000))).toBe(false)
    expect(await running({ state: 'idle', since: now })).toBe(false)
    expect(await running({ ...loadingSince(now), processId: 2 ** 31 - 1 })).toBe(false)
  })

  onUnix('counts while its process is stopped and has no room for further connections', async () => {
    const path = socketAddressOf(temporary, 'a')
    const code = `require('net').createServer().listen({ path: ${JSON.stringify(path)}, backlog: 1 }, () => console.log())`
    const child = spawn(process.execPath, ['-e', code])
    onTestFinished(() => void child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    child.kill('SIGSTOP')
    const waiting = Array.from({ length: 5 }, () => connect(path).on('error', () => {}))
    onTestFinished(() => {
      for (const socket of waiting) socket.destroy()
    })

    expect(await running({ processId: child.pid as number })).toBe(true)
  })
})

test('hasProcess finds running processes, and none in an inaccessible folder', async () => {
  const path = join(temporary, 'run')
  const folder = new RuntimeDir(path)
  writeRecord(folder.ensure(), 'starting', { ...record, state: 'loading', since: Date.now() })
  writeRecord(path, 'left', record)
  const names = ['starting', 'left', 'unknown']

  expect(await Promise.all(names.map((name) => folder.hasProcess(name)))).toEqual([true, false, false])
  vi.stubEnv('TMPDIR', '/dev/null')
  expect(await new RuntimeDir('/dev/null/run').hasProcess('starting')).toBe(false)
})

test('a removed folder has no records', () => {
  expect(readRecords(join(temporary, 'gone')).size).toBe(0)
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
