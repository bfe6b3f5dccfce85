/** A first look at a GGUF file, before any parser that believes what it reads. */
import { open } from 'node:fs/promises'
import { LlmError } from '../errors.ts'
import type { Model } from './store.ts'

// Shape: the GGUF specification, "File structure": magic, version, tensor count, metadata count.
const headerBytes = 24
const versions = [2, 3]
/** The smallest that a tensor's description and a metadata entry can be. */
const [tensorBytes, entryBytes] = [33n, 14n]

/** Throws `upstream` for a file that is no GGUF, or whose counts cannot be true. */
export async function checkHeader({ name, path, sizeBytes }: Model): Promise<void> {
  const header = await readHeader(path).catch((cause: NodeJS.ErrnoException) => {
    throw broken(name, `it cannot be read (${cause.code})`, cause)
  })
  const tooShort = header.length < headerBytes
  if (tooShort || header.toString('latin1', 0, 4) !== 'GGUF') throw broken(name, 'it is not a GGUF file')
  if (!versions.includes(header.readUInt32LE(4))) throw broken(name, 'its GGUF version is unknown')
  const needed = header.readBigUInt64LE(8) * tensorBytes + header.readBigUInt64LE(16) * entryBytes
  if (needed > BigInt(sizeBytes)) throw broken(name, 'it promises more than it holds')
}

async function readHeader(path: string): Promise<Buffer> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(headerBytes) })
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

const broken = (name: string, reason: string, cause?: unknown): LlmError =>
  new LlmError('upstream', `The file of the model "${name}" cannot be used: ${reason}.`, {}, { cause })
