/**
 * Reads metadata values of a GGUF file. The types follow `gguf_metadata_value_type` in the GGUF
 * specification.
 */
import { type FileWindow, UnusableFileError } from './file-window.ts'

/** Limit of one text, a hundred times the longest templates and licenses. */
const maxTextBytes = 4 * 1024 * 1024
/** Limit of the estimated memory for one file's metadata. The largest known vocabulary takes half of it. */
const maxRetainedBytes = 64 * 1024 * 1024
const slotBytes = 16
/**
 * Limit of the elements in all arrays of one file. A vocabulary of 256,000 tokens has a million elements,
 * including its merges.
 */
const maxElements = 8 * 1024 * 1024
/** The format allows nested arrays, but no known file has them. */
const maxDepth = 4

const textType = 8
const arrayType = 9
/** Minimum bytes of a text (its length) and of an array (its type and length). */
const [minTextBytes, minArrayBytes] = [8, 12]

interface Scalar {
  readonly bytes: number
  readonly read: (from: Buffer, at: number) => unknown
}

const scalars: Readonly<Record<number, Scalar>> = {
  0: { bytes: 1, read: (from, at) => from.readUInt8(at) },
  1: { bytes: 1, read: (from, at) => from.readInt8(at) },
  2: { bytes: 2, read: (from, at) => from.readUInt16LE(at) },
  3: { bytes: 2, read: (from, at) => from.readInt16LE(at) },
  4: { bytes: 4, read: (from, at) => from.readUInt32LE(at) },
  5: { bytes: 4, read: (from, at) => from.readInt32LE(at) },
  6: { bytes: 4, read: (from, at) => toShortestDouble(from.readFloatLE(at)) },
  7: { bytes: 1, read: (from, at) => from.readUInt8(at) !== 0 },
  10: { bytes: 8, read: (from, at) => toNumberOrDigits(from.readBigUInt64LE(at)) },
  11: { bytes: 8, read: (from, at) => toNumberOrDigits(from.readBigInt64LE(at)) },
  12: { bytes: 8, read: (from, at) => from.readDoubleLE(at) },
}

/** Reads values in the order of the file, within a memory limit. */
export class ValueReader {
  readonly #window: FileWindow
  #retainedBytes = 0
  #elements = 0

  constructor(window: FileWindow) {
    this.#window = window
  }

  /** @param arrays whether to keep array elements. Otherwise an array becomes `null`, unless it is empty */
  async readValue(type: number, arrays: boolean): Promise<unknown> {
    if (type === textType) return this.readText()
    if (type === arrayType) return this.#readArray(1, arrays)
    const { bytes, read } = scalarOf(type)
    await this.#window.load(bytes)
    this.reserve(slotBytes)
    return read(this.#window.take(bytes), 0)
  }

  async readText(maxBytes = maxTextBytes): Promise<string> {
    await this.#window.load(minTextBytes)
    const length = this.#readTextLength(maxBytes)
    await this.#window.load(length)
    return this.#window.takeText(length)
  }

  /** Counts memory that the calling code is about to allocate. Throws `UnusableFileError` beyond the limit. */
  reserve(bytes: number): void {
    this.#retainedBytes += bytes
    if (this.#retainedBytes > maxRetainedBytes) throw new UnusableFileError('its metadata is too large')
  }

  async #readArray(depth: number, isRetained: boolean): Promise<unknown> {
    if (depth > maxDepth) throw new UnusableFileError('its metadata is nested too deeply')
    await this.#window.load(minArrayBytes)
    const type = this.#window.u32()
    const count = this.#window.u64()
    this.reserve(slotBytes)
    this.#elements += count
    if (type === textType) {
      this.#expectElements(count, minTextBytes)
      return isRetained || count === 0 ? this.#readTexts(count) : this.#skipTexts(count)
    }
    if (type === arrayType) {
      this.#expectElements(count, minArrayBytes)
      return this.#readNestedArrays(count, depth, isRetained)
    }
    const scalar = scalarOf(type)
    this.#expectElements(count, scalar.bytes)
    if (isRetained || count === 0) return this.#readScalars(count, scalar)
    this.#window.skip(count * scalar.bytes)
    return null
  }

  async #readScalars(count: number, { bytes, read }: Scalar): Promise<unknown[]> {
    this.reserve(count * slotBytes)
    const values: unknown[] = []
    while (values.length < count) {
      const batch = Math.min(count - values.length, 1_024)
      await this.#window.load(batch * bytes)
      const from = this.#window.take(batch * bytes)
      for (let i = 0; i < batch; i++) values.push(read(from, i * bytes))
    }
    return values
  }

  async #readTexts(count: number): Promise<string[]> {
    const texts: string[] = []
    while (texts.length < count) {
      // Awaiting each element would be slow. Arrays have hundreds of thousands of elements, and most are
      // already loaded.
      const lengthRead = this.#window.load(minTextBytes)
      if (lengthRead) await lengthRead
      const length = this.#readTextLength(maxTextBytes)
      const textRead = this.#window.load(length)
      if (textRead) await textRead
      texts.push(this.#window.takeText(length))
    }
    return texts
  }

  async #skipTexts(count: number): Promise<null> {
    for (let i = 0; i < count; i++) {
      const lengthRead = this.#window.load(minTextBytes)
      if (lengthRead) await lengthRead
      this.#window.skip(this.#window.u64())
    }
    return null
  }

  async #readNestedArrays(count: number, depth: number, isRetained: boolean): Promise<unknown[] | null> {
    const values: unknown[] = []
    for (let i = 0; i < count; i++) {
      const value = await this.#readArray(depth + 1, isRetained)
      if (isRetained) values.push(value)
    }
    return isRetained || count === 0 ? values : null
  }

  /**
   * Throws for too many elements. Skipped elements count, too, since llama.cpp's reader keeps all elements.
   */
  #expectElements(count: number, bytes: number): void {
    this.#window.expectAvailable(count * bytes)
    if (this.#elements > maxElements) throw new UnusableFileError('its metadata is too large')
  }

  #readTextLength(maxBytes: number): number {
    const length = this.#window.u64()
    this.#window.expectAvailable(length)
    if (length > maxBytes) throw new UnusableFileError('its metadata contains a text that is too long')
    this.reserve(slotBytes + length)
    return length
  }
}

function scalarOf(type: number): Scalar {
  const scalar = scalars[type]
  if (!scalar) throw new UnusableFileError('its metadata contains a value of an unknown type')
  return scalar
}

/** Returns decimal digits for an integer that a double cannot represent exactly. */
function toNumberOrDigits(value: bigint): number | string {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : String(value)
}

/**
 * Returns the shortest decimal number that rounds to the given 32-bit float. For example, it returns 0.00001
 * instead of 0.000009999999747378752.
 */
function toShortestDouble(single: number): number {
  if (Number.isInteger(single) && Math.abs(single) < 2 ** 24) return single
  for (let digits = 6; digits < 9; digits++) {
    const rounded = Number(single.toPrecision(digits))
    if (Math.fround(rounded) === single) return rounded
  }
  return Number(single.toPrecision(9))
}
