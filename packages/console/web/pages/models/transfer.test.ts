import { expect, test } from 'vitest'
import { addLine, progressOf, startTransfer, type TransferLine } from './transfer.ts'

/** @param lines with their times in ms */
const transferOf = (lines: readonly (readonly [at: number, line: TransferLine])[]) =>
  lines.reduce((transfer, [at, line]) => addLine(transfer, line, at), startTransfer)

test('a transfer without sizes has no progress', () => {
  const transfer = transferOf([[0, { status: 'pulling manifest' }]])

  expect(transfer.status).toBe('pulling manifest')
  expect(progressOf(transfer, 1_000)).toBeUndefined()
})

test('the bytes of all files are added up', () => {
  const transfer = transferOf([
    [0, { digest: 'a', total: 1_000 }],
    [500, { digest: 'a', total: 1_000, completed: 600 }],
    [1_000, { digest: 'a', total: 1_000, completed: 1_000 }],
    [1_500, { digest: 'b', total: 1_000 }],
  ])

  expect(progressOf(transfer, 2_000)).toEqual({
    completed: 1_000,
    total: 2_000,
    bytesPerSecond: 500,
    remainingMs: 2_000,
  })
})

test('the speed of a resumed pull does not count what was there before', () => {
  const transfer = transferOf([
    [0, { digest: 'a', total: 1_000, completed: 800 }],
    [1_000, { digest: 'a', total: 1_000, completed: 900 }],
  ])

  expect(progressOf(transfer, 1_000)).toMatchObject({ bytesPerSecond: 100, remainingMs: 1_000 })
})
