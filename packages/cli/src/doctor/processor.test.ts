import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { readCpuQuota } from '@modelmount/core/machine'
import { expect, test } from 'vitest'
import { checkProcessor } from './processor.ts'

const machineWith = (cpuFeatures: readonly string[]) => ({
  engine: {
    ...{
      version: '3.22.1',
      llamaCpp: 'b1',
      gpu: false as const,
      cards: [],
      freeVramBytes: 0,
      totalVramBytes: 0,
    },
    cpuFeatures,
  } as const,
  cpu: { cores: 64, threads: 63 },
})
const all = ['AVX2', 'FMA', 'F16C', 'NEON', 'DOTPROD']

test('a processor with fast instructions is ok', () => {
  expect(checkProcessor(machineWith(all), undefined)).toEqual([
    { check: 'processor', status: 'ok', message: '64 cores, up to 63 threads for a model' },
    { check: 'processor', status: 'ok', message: 'The engine uses AVX2, FMA, F16C, NEON, DOTPROD' },
  ])
})

test.runIf(['x64', 'arm64'].includes(process.arch))('missing instructions are named', () => {
  const [, features] = checkProcessor(machineWith(['SSE3']), undefined)

  expect(features?.status).toBe('warning')
  expect(features?.message).toMatch(/AVX2, FMA, F16C|NEON, DOTPROD/)
})

test('a container with fewer cores than a model has threads gets the flag that limits the threads', () => {
  expect(checkProcessor(machineWith(all), 2.5)[0]).toMatchObject({
    status: 'warning',
    fix: 'modelmount serve --threads 2',
  })
  expect(checkProcessor(machineWith(all), 64)[0]?.status).toBe('ok')
})

test.runIf(process.platform === 'linux')('the limit is read from the control group of this process', () => {
  const [, group] = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8')) ?? []

  const quota = readCpuQuota()

  if (group === undefined) expect(quota).toBeUndefined()
  else expect(quota ?? availableParallelism()).toBeGreaterThan(0)
})
