/** Encoding of vectors in messages: float32, little-endian, in base64. */

export const encodeVector = (values: ArrayLike<number>): string =>
  Buffer.from(Float32Array.from(values).buffer).toString('base64')
export function decodeVector(vector: string): readonly number[] {
  const bytes = Buffer.from(vector, 'base64')
  return Array.from({ length: bytes.length >> 2 }, (_, index) => bytes.readFloatLE(4 * index))
}
