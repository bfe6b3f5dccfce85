import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { modelPath } from '@modelmount/tiny-model'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkHeader } from './gguf.ts'

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gguf-'))
})

afterAll(() => rm(folder, { recursive: true }))

const modelAt = (path: string, sizeBytes: number) => ({
  name: 'some:latest',
  path,
  sizeBytes,
  modifiedAt: new Date(0),
  builtIn: false,
})

async function fileOf(bytes: Uint8Array | string) {
  const path = join(folder, 'some.gguf')
  await writeFile(path, bytes)
  return modelAt(path, bytes.length)
}

function header(version: number, tensors: bigint, entries: bigint): Buffer {
  const bytes = Buffer.alloc(24)
  bytes.write('GGUF')
  bytes.writeUInt32LE(version, 4)
  bytes.writeBigUInt64LE(tensors, 8)
  bytes.writeBigUInt64LE(entries, 16)
  return bytes
}

test('a real model passes', async () => {
  await expect(checkHeader(modelAt(modelPath, 3_926_560))).resolves.toBeUndefined()
})

test.each([
  ['an empty file', '', 'not a GGUF file'],
  ['a file shorter than a header', 'GGUF', 'not a GGUF file'],
  ['another kind of file', 'PK'.repeat(100), 'not a GGUF file'],
  ['text that begins like a GGUF', 'GGUF, or so it says, at some length', 'version is unknown'],
  ['a version from the future', header(9, 0n, 0n), 'version is unknown'],
  ['more tensors than bytes', header(3, 2n ** 63n, 0n), 'promises more than it holds'],
  ['more metadata than bytes', header(3, 0n, 1_000_000_000n), 'promises more than it holds'],
])('%s is refused', async (_what, bytes, reason) => {
  const model = await fileOf(bytes)

  await expect(checkHeader(model)).rejects.toMatchObject({
    code: 'upstream',
    message: expect.stringContaining(reason),
  })
})
