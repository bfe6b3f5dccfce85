import { totalmem } from 'node:os'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { readMachineMemory } from './machine-memory.ts'

const files = vi.hoisted(() => new Map<string, string>())
vi.mock('node:fs', () => ({
  readFileSync: (path: string) => {
    const text = files.get(path)
    if (text === undefined) throw new Error('ENOENT')
    return text
  },
}))

beforeEach(() => {
  vi.spyOn(process, 'availableMemory').mockReturnValue(1_000_000)
  vi.spyOn(process, 'constrainedMemory').mockReturnValue(8_000_000)
})

afterEach(() => {
  vi.restoreAllMocks()
  files.clear()
})

const stat = 'anon 3000000\nfile 4500000\ninactive_anon 7\ninactive_file 3000000\nactive_file 1000000\n'

test('counts the page cache of a control group with a limit as free', () => {
  files.set('/proc/self/cgroup', '0::/my.slice/app.service\n')
  files.set('/sys/fs/cgroup/my.slice/app.service/memory.stat', stat)

  expect(readMachineMemory()).toEqual({ free: 5_000_000, total: 8_000_000 })
})

test('finds the control group of a container at the root', () => {
  files.set('/proc/self/cgroup', '0::/\n')
  files.set('/sys/fs/cgroup/memory.stat', stat.replace('3000000\nactive', '9000000\nactive'))

  expect(readMachineMemory()).toEqual({ free: 8_000_000, total: 8_000_000 })
})

test.each([
  ['is absent', 0],
  ['exceeds the machine', 2 ** 64],
])('reports the memory of the system if the limit %s', (_what, limit) => {
  vi.mocked(process.constrainedMemory).mockReturnValue(limit)
  files.set('/proc/self/cgroup', '0::/\n')
  files.set('/sys/fs/cgroup/memory.stat', stat)

  expect(readMachineMemory()).toEqual({ free: 1_000_000, total: totalmem() })
})

test('reports the available memory if the page cache is unknown', () => {
  files.set('/proc/self/cgroup', '4:memory:/app\n')

  expect(readMachineMemory()).toEqual({ free: 1_000_000, total: 8_000_000 })
})
