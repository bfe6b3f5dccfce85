import { readFileSync } from 'node:fs'
import { noiseModel } from './models.ts'

/** The noise model with one number of its metadata changed, such as `llama.block_count`. */
export function withMetadata(key: string, value: number): Buffer {
  const bytes = readFileSync(noiseModel)
  const uint32 = 4
  const name = Buffer.from(key)
  let at = bytes.indexOf(name) + name.length
  // A longer key may begin alike; ours is followed by its type.
  while (bytes.readUInt32LE(at) !== uint32) at = bytes.indexOf(name, at) + name.length
  bytes.writeUInt32LE(value, at + 4)
  return bytes
}
