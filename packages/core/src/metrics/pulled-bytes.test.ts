import { expect, test } from 'vitest'
import type { TransferProgress } from '../diagnostics/events.ts'
import { PulledBytes } from './pulled-bytes.ts'

const of = {
  llm: {},
  kind: 'pull',
  model: 'tiny',
  status: 'pulling',
  isLast: false,
  error: undefined,
} as const

function sumOf(progress: readonly Partial<TransferProgress>[]): number {
  let sum = 0
  const pulled = new PulledBytes((bytes) => {
    sum += bytes
  })
  for (const one of progress) pulled.onProgress({ ...of, ...one })
  return sum
}

test('the bytes of blobs that are pulled at the same time add up', () => {
  const bytes = sumOf([
    { digest: 'a', completedBytes: 0 },
    { digest: 'b', completedBytes: 0 },
    { digest: 'a', completedBytes: 70 },
    { digest: 'b', completedBytes: 30 },
    { digest: 'a', completedBytes: 100 },
  ])

  expect(bytes).toBe(130)
})

test('bytes of an earlier pull and of pushes do not count', () => {
  const resumed = { digest: 'a', completedBytes: 50 }
  const push = { ...resumed, kind: 'push', completedBytes: 90 } as const

  expect(sumOf([resumed, { ...resumed, completedBytes: 60 }, push])).toBe(10)
})

test('a further pull of the same model begins anew', () => {
  const whole = { digest: 'a', completedBytes: 100 }

  expect(sumOf([{ ...whole, completedBytes: 0 }, whole, { isLast: true }, whole])).toBe(100)
})
