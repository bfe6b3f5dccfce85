/** Damaged GGUF files. Each is read, or rejected with an `LlmError`, within 2 s. */
import { mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { modelPath } from '@modelmount/tiny-model'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LlmError } from '../../packages/core/src/errors.ts'
import { readGguf } from '../../packages/core/src/models/gguf/gguf.ts'

const limitMs = 2_000
/** Covers the metadata, the tensor descriptions and a few weights. */
const headBytes = 50_000

let folder: string
let path: string
let whole: Buffer

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fuzz-gguf-'))
  path = join(folder, 'damaged.gguf')
  whole = (await readFile(modelPath)).subarray(0, headBytes)
})

afterAll(() => rm(folder, { recursive: true }))

async function expectQuietEnd(bytes: Uint8Array, arrays: boolean): Promise<void> {
  const file = await open(path, 'w')
  await file.write(bytes)
  // The file is as long as the model, so that a slightly wrong size does not end beyond the file.
  await file.truncate(bytes.length < headBytes ? bytes.length : 5_180_192)
  await file.close()
  const startedAt = performance.now()

  const error = await readGguf(path, { arrays }).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )

  if (error !== undefined) {
    expect(error).toBeInstanceOf(LlmError)
    expect(error).toMatchObject({ code: 'upstream', message: expect.not.stringContaining('undefined') })
  }
  expect(performance.now() - startedAt).toBeLessThan(limitMs)
}

test('a truncated GGUF file is read or rejected within 2 s', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(headBytes - 1), fc.boolean(), (length, arrays) =>
      expectQuietEnd(whole.subarray(0, length), arrays),
    ),
    { numRuns: 300 },
  )
})

/** Half of the positions are in the first kilobyte, where many types and counts are. */
const place = fc.oneof(fc.nat(1_000), fc.nat(headBytes - 1))

test('a GGUF file with overwritten bytes is read or rejected within 2 s', async () => {
  const damage = fc.array(fc.tuple(place, fc.nat(255)), { minLength: 1, maxLength: 8 })

  await fc.assert(
    fc.asyncProperty(damage, fc.boolean(), async (flips, arrays) => {
      const bytes = Buffer.from(whole)
      for (const [at, value] of flips) bytes[at] = value
      await expectQuietEnd(bytes, arrays)
    }),
    { numRuns: 500 },
  )
})

test('a GGUF file with overwritten lengths is read or rejected within 2 s', async () => {
  const large = fc.oneof(fc.bigInt(0n, 5_000_000n), fc.bigInt(0n, 2n ** 64n - 1n))

  await fc.assert(
    fc.asyncProperty(place, large, fc.boolean(), async (at, value, arrays) => {
      const bytes = Buffer.from(whole)
      bytes.writeBigUInt64LE(value, Math.min(at, headBytes - 8))
      await expectQuietEnd(bytes, arrays)
    }),
    { numRuns: 500 },
  )
})
