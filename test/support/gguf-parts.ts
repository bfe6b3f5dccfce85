/** Splits a GGUF file into parts and joins them again, so that tests can replace one part. */
import { entry, gguf, tensor } from './gguf.ts'

export interface Tensor {
  readonly name: string
  readonly shape: readonly bigint[]
  readonly type: number
  readonly offset: bigint
}

export interface Parts {
  /** Metadata by key: the type number, and the value as its bytes in the file. */
  readonly entries: ReadonlyMap<string, readonly [type: number, value: Buffer]>
  readonly tensors: readonly Tensor[]
  readonly weights: Buffer
}

const alignment = 32
const [textType, arrayType] = [8, 9]
const scalarBytes: Readonly<Record<number, number>> = {
  0: 1,
  1: 1,
  2: 2,
  3: 2,
  4: 4,
  5: 4,
  6: 4,
  7: 1,
  10: 8,
  11: 8,
  12: 8,
}

/** Splits a valid GGUF file into its parts. */
export function partsOf(bytes: Buffer): Parts {
  let at = 8
  const advance = (count: number): number => {
    at += count
    return at - count
  }
  const u32 = (): number => bytes.readUInt32LE(advance(4))
  const u64 = (): bigint => bytes.readBigUInt64LE(advance(8))
  const skipText = (): void => {
    at += Number(bytes.readBigUInt64LE(at)) + 8
  }
  const text = (): string => {
    const start = at + 8
    skipText()
    return bytes.toString('utf8', start, at)
  }
  const skipValue = (type: number): void => {
    if (type === textType) skipText()
    else if (type === arrayType) {
      const [inner, count] = [u32(), Number(u64())]
      for (let i = 0; i < count; i++) skipValue(inner)
    } else at += scalarBytes[type] as number
  }
  const times = <T>(count: bigint, make: () => T): T[] => Array.from({ length: Number(count) }, make)

  const [tensorCount, entryCount] = [u64(), u64()]
  const entries = times(entryCount, (): [string, [number, Buffer]] => {
    const [key, type] = [text(), u32()]
    const start = at
    skipValue(type)
    return [key, [type, bytes.subarray(start, at)]]
  })
  const tensors = times(tensorCount, () => {
    const name = text()
    const shape = times(BigInt(u32()), u64)
    return { name, shape, type: u32(), offset: u64() }
  })
  return { entries: new Map(entries), tensors, weights: bytes.subarray(padded(at)) }
}

export function fileOf({ entries, tensors, weights }: Parts): Buffer {
  const head = gguf(
    [...entries].map(([key, [type, value]]) => entry(key, type, value)),
    tensors.map(({ name, shape, type, offset }) => tensor(name, shape, type, offset)),
  )
  return Buffer.concat([head, Buffer.alloc(padded(head.length) - head.length), weights])
}

const padded = (length: number): number => Math.ceil(length / alignment) * alignment
