import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { emptyFolder } from '../../../../../../test/support/empty-folder.ts'
import { availableCores, readCpuQuota } from './available-cores.ts'

const all = availableParallelism()

test.each([
  [undefined, all],
  [all + 1, all],
  [1.5, 1],
  [0.2, 1],
])('with a quota of %s cores, %i are available', (quota, cores) => {
  expect(availableCores(quota)).toBe(cores)
})

test.runIf(process.platform === 'linux').each([
  ['150000 100000', 1.5],
  ['max 100000', undefined],
])('the limit %j of a control group is %s cores', (limit, cores) => {
  const folder = emptyFolder()
  const [, group = ''] = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8')) ?? []
  mkdirSync(join(folder, group), { recursive: true })
  writeFileSync(join(folder, group, 'cpu.max'), `${limit}\n`)

  expect(readCpuQuota(folder)).toBe(cores)
})
