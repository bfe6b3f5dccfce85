import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { fakeDecoder } from '../../../../../../../test/support/fake-decoder.ts'
import { measureStateSize } from './state-size.ts'

let file: string

beforeEach(() => {
  file = join(mkdtempSync(join(tmpdir(), 'state-size-')), 'state')
})
afterEach(() => rmSync(join(file, '..'), { recursive: true }))

/** A decoder whose states take 100 bytes, and 12 more for each token. */
const decoder = (windowSize = Number.POSITIVE_INFINITY) =>
  fakeDecoder({ windowSize, save: async (_, { length }) => 100 + 12 * length })

test('the size of a state grows with the number of tokens', async () => {
  const sizeOf = await measureStateSize(decoder(), file)

  expect([1, 2, 3_000].map((length) => sizeOf?.(length))).toEqual([112, 124, 36_100])
})

test('with a sliding window, the size is a lower bound for longer sequences', async () => {
  const sizeOf = await measureStateSize(decoder(128), file)

  expect([128, 129, 3_000].map((length) => sizeOf?.(length))).toEqual([1_636, 1_636, 1_636])
})

test('the sequence is empty afterwards', async () => {
  const measured = decoder()
  await measureStateSize(measured, file)

  const samples = await measured.decode([{ sequence: 0, position: 0, tokens: [], isDeterministic: false }])

  expect(samples).toEqual([[]])
})

test.each([
  ['saved', { save: () => Promise.reject(new Error('ENOSPC')) }],
  ['evaluated', { failsAt: () => true }],
])('if no state can be %s, the size is unknown', async (_, options) => {
  expect(await measureStateSize(fakeDecoder(options), file)).toBeUndefined()
})
