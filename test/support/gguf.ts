/** Builds GGUF files byte by byte. Format: the GGUF specification. */

// Numbers are little-endian. A text follows its length in bytes.
export const u8 = (value: number): Buffer => Buffer.of(value)
export const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
export const u64 = (value: bigint | number): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}
export const f32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(value)
  return bytes
}
export const text = (value: string): Buffer =>
  Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)])

export const header = (version: number, tensors: bigint | number, entries: bigint | number): Buffer =>
  Buffer.concat([Buffer.from('GGUF'), u32(version), u64(tensors), u64(entries)])

export const entry = (key: string, type: number, ...value: Buffer[]): Buffer =>
  Buffer.concat([text(key), u32(type), ...value])
export const textEntry = (key: string, value: string): Buffer => entry(key, 8, text(value))
export const countEntry = (key: string, value: number): Buffer => entry(key, 4, u32(value))
export const arrayEntry = (key: string, type: number, ...values: Buffer[]): Buffer =>
  entry(key, 9, u32(type), u64(values.length), ...values)

export const tensor = (
  name: string,
  shape: readonly (bigint | number)[],
  type = 0,
  offset: bigint | number = 0,
): Buffer => Buffer.concat([text(name), u32(shape.length), ...shape.map(u64), u32(type), u64(offset)])

export const gguf = (entries: readonly Buffer[], tensors: readonly Buffer[] = [], version = 3): Buffer =>
  Buffer.concat([header(version, tensors.length, entries.length), ...entries, ...tensors])
