import { readFileSync } from 'node:fs'
import { noiseModel } from './models.ts'

/** The noise model with another value for one number of its metadata, such as `llama.block_count`. */
export function withMetadata(key: string, value: number): Buffer {
  const bytes = readFileSync(noiseModel)
  const uint32 = 4
  const name = Buffer.from(key)
  let at = bytes.indexOf(name) + name.length
  // Another key may begin with the same text. The type follows directly after the complete key.
  while (bytes.readUInt32LE(at) !== uint32) at = bytes.indexOf(name, at) + name.length
  bytes.writeUInt32LE(value, at + 4)
  return bytes
}
