/** Reads the metadata and tensor list of an untrusted GGUF file. Follows the GGUF specification. */
import { basename } from 'node:path'
import { LlmError } from '../../errors.ts'
import { withFile } from '../ollama-store/disk.ts'
import { FileWindow, UnusableFileError } from './file-window.ts'
import { tensorTypes } from './types.ts'
import { ValueReader } from './values.ts'

export interface Gguf {
  readonly version: number
  /** Values by key, in the order of the file. Integers beyond 2^53 are decimal strings. */
  readonly metadata: Readonly<Record<string, unknown>>
  /** GGUF type number of each metadata value, by key. */
  readonly metadataTypes: Readonly<Record<string, number>>
  readonly tensors: readonly Tensor[]
  /** `false` for a truncated file. */
  readonly isComplete: boolean
}

/** A tensor of a GGUF file, without its values. */
export interface Tensor {
  /** Name of the tensor, such as `blk.0.attn_q.weight`. */
  readonly name: string
  /** Type name, such as `F32` or `Q8_0`. */
  readonly type: string
  /** Dimensions of the tensor, beginning with the length of a row. */
  readonly shape: readonly number[]
}

export interface GgufOptions {
  /**
   * Whether to read arrays, for all keys or by key. An array that is not read becomes `null`, unless it is
   * empty.
   * @default false
   */
  readonly arrays?: boolean | ((key: string) => boolean)
  /** Description of the file in error messages. @default `describeFile` of the file's name */
  readonly label?: string
}

/** Bytes of magic number, version, tensor count and metadata count. */
const headerBytes = 24
const versions = [2, 3]
/** Minimum size of a tensor description and of a metadata entry, in bytes. */
const [tensorBytes, entryBytes] = [33, 14]
const maxKeyBytes = 65_535
const defaultAlignment = 32
/** Equal to `GGML_MAX_DIMS` of ggml. */
const maxDimensions = 4
/** Estimated size of a `Tensor` in memory. */
const tensorObjectBytes = 128

/**
 * Reads metadata and tensor descriptions, but no weights. Throws an `LlmError` `upstream` if the file is
 * not GGUF, is damaged, or has too much metadata.
 */
export const readGguf = (
  path: string,
  { arrays = false, label = describeFile(basename(path)) }: GgufOptions = {},
) =>
  withFileWindow(path, label, async (window): Promise<Gguf> => {
    const { version, tensorCount, entryCount } = await readHeader(window)
    const values = new ValueReader(window)
    const isArrayIncluded = typeof arrays === 'function' ? arrays : () => arrays
    const entries: MetadataEntry[] = []
    while (entries.length < entryCount) entries.push(await readEntry(window, values, isArrayIncluded))
    const metadata = Object.fromEntries(entries.map(({ key, value }) => [key, value]))
    const metadataTypes = Object.fromEntries(entries.map(({ key, type }) => [key, type]))
    const tensors: Tensor[] = []
    const names = new Set<string>()
    let weightBytes = 0
    while (tensors.length < tensorCount) {
      const { end, ...tensor } = await readTensor(window, values)
      weightBytes = Math.max(weightBytes, end)
      if (names.has(tensor.name)) throw new UnusableFileError('it has a tensor twice')
      names.add(tensor.name)
      tensors.push(tensor)
    }
    const alignment = alignmentOf(metadata)
    const isComplete = Math.ceil(window.position / alignment) * alignment + weightBytes <= window.size
    return { version, metadata, metadataTypes, tensors, isComplete: isComplete || weightBytes === 0 }
  })

async function readHeader(window: FileWindow) {
  if (window.size < headerBytes) throw new UnusableFileError('it is not a GGUF file')
  await window.load(headerBytes)
  if (window.take(4).toString('latin1') !== 'GGUF') throw new UnusableFileError('it is not a GGUF file')
  const version = window.u32()
  if (!versions.includes(version)) throw new UnusableFileError('its GGUF version is unknown')
  const tensorCount = window.u64()
  const entryCount = window.u64()
  window.expectAvailable(tensorCount * tensorBytes + entryCount * entryBytes)
  return { version, tensorCount, entryCount }
}

interface MetadataEntry {
  readonly key: string
  readonly type: number
  readonly value: unknown
}

async function readEntry(
  window: FileWindow,
  values: ValueReader,
  isArrayIncluded: (key: string) => boolean,
): Promise<MetadataEntry> {
  const key = await values.readText(maxKeyBytes)
  await window.load(4)
  const type = window.u32()
  return { key, type, value: await values.readValue(type, isArrayIncluded(key)) }
}

/** `end` is the offset after the tensor's weights, counted from the first weight in the file. */
async function readTensor(
  window: FileWindow,
  values: ValueReader,
): Promise<Tensor & { readonly end: number }> {
  values.reserve(tensorObjectBytes)
  const name = await values.readText(maxKeyBytes)
  await window.load(4)
  const dimensions = window.u32()
  if (dimensions > maxDimensions) throw new UnusableFileError('it has a tensor with too many dimensions')
  await window.load(dimensions * 8 + 12)
  const shape = Array.from({ length: dimensions }, () => window.u64())
  if (![...shape, countElements(shape)].every(Number.isSafeInteger))
    throw new UnusableFileError('it has a tensor that is too large')
  const type = tensorTypes[window.u32()]
  if (!type) throw new UnusableFileError('it has a tensor of an unknown type')
  const [typeName, blockElements, blockBytes] = type
  const end = window.u64() + Math.ceil(countElements(shape) / blockElements) * blockBytes
  return { name, type: typeName, shape, end }
}

function alignmentOf({ 'general.alignment': alignment = defaultAlignment }: Gguf['metadata']): number {
  if (typeof alignment === 'number' && alignment > 0 && Number.isInteger(Math.log2(alignment)))
    return alignment
  throw new UnusableFileError('its alignment is no power of two')
}

export const countElements = (shape: readonly number[]): number =>
  shape.reduce((all, length) => all * length, 1)

/** Opens the file, and closes it after `read`. Error messages contain `label`. */
async function withFileWindow<T>(
  path: string,
  label: string,
  read: (window: FileWindow) => Promise<T>,
): Promise<T> {
  try {
    if (path === '') throw new UnusableFileError('its weights are not on this machine')
    return await withFile(path, 'r', async (file) => read(new FileWindow(file, (await file.stat()).size)))
  } catch (cause) {
    const reason =
      cause instanceof UnusableFileError
        ? cause.message
        : `it cannot be read (${(cause as NodeJS.ErrnoException).code})`
    throw unusableFile(label, reason, cause)
  }
}

export const describeFile = (model: string): string => `file of the model "${model}"`

export const unusableFile = (label: string, reason: string, cause?: unknown): LlmError =>
  new LlmError('upstream', `The ${label} cannot be used: ${reason}.`, {}, { cause })
