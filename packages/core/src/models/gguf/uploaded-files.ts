/** Reads the uploaded GGUF files of a create request. */
import { invalidRequest, LlmError } from '../../errors.ts'
import type { CreateModelRequest } from '../modelfile/create-request.ts'
import { blobName, type Digest, toDigest } from '../ollama-store/digest.ts'
import { type Layer, mediaTypeOf } from '../ollama-store/manifest.ts'
import type { Blobs } from '../ollama-store/store-contracts.ts'
import type { Progress } from '../registry/progress.ts'
import { checkModel } from './check.ts'
import { readDetails } from './details.ts'
import { describeFile, type Gguf, readGguf } from './gguf.ts'
import { detectGgufKind, type GgufKind, isGguf } from './kind.ts'
import type { ModelDetails } from './model-details.ts'

export interface UploadedGguf {
  readonly kind: GgufKind
  readonly name: string
  readonly path: string
  readonly layer: Layer
  readonly details: ModelDetails
}
/** Order of the layers in the manifest. */
export const uploadKinds: readonly GgufKind[] = ['model', 'projector', 'adapter']

/**
 * Parses the uploaded files in order. Throws `invalid_request` at the first file that cannot be part of a
 * model.
 */
export async function* parseUploads(
  files: Readonly<Record<string, string>> = {},
  blobs: Blobs,
): AsyncGenerator<Progress, readonly UploadedGguf[]> {
  const uploads: UploadedGguf[] = []
  for (const [name, digest] of Object.entries(files)) {
    yield { status: 'parsing GGUF' }
    uploads.push(await parseUpload(name, toDigest(digest), blobs))
  }
  return uploads
}

/** Throws `invalid_request` for a file that is not a LoRA adapter. */
export async function* parseAdapters(
  files: CreateModelRequest['adapters'],
  blobs: Blobs,
): AsyncGenerator<Progress, readonly UploadedGguf[]> {
  const uploads = yield* parseUploads(files, blobs)
  const other = uploads.find(({ kind }) => kind !== 'adapter')
  if (other) throw invalidRequest(`the file "${other.name}" is no adapter`)
  return uploads
}

async function parseUpload(name: string, digest: Digest, blobs: Blobs): Promise<UploadedGguf> {
  const { path, sizeBytes: size } = await findUploadedBlob(blobs, digest)
  if (!(await isGguf(path))) throw invalidRequest('supplied file was not in GGUF format')
  const { metadata, isComplete } = await blameRequest(readGguf(path, { label: describeFile(name) }))
  if (!isComplete)
    throw invalidRequest(`The ${describeFile(name)} cannot be used: it was cut off, and weights are missing.`)
  expectUnsplitFile(name, metadata)
  const kind = detectGgufKind(metadata)
  const details = await blameRequest(readDetails({ name, path }))
  const layer = { mediaType: mediaTypeOf(kind), digest, size, ...(kind === 'adapter' && { from: name }) }
  return { kind, name, path, layer, details }
}

/**
 * Throws `invalid_request` for a file of a split model, since the store keeps a model's weights in one file.
 */
export function expectUnsplitFile(name: string, metadata: Gguf['metadata']): void {
  if (Number(metadata['split.count'] ?? 1) > 1)
    throw invalidRequest(
      `split GGUF "${name}" cannot be stored: make one file of its parts first (llama-gguf-split --merge)`,
    )
}

/**
 * Throws `invalid_request` unless the name ends with `.gguf` or the file begins with the GGUF magic bytes.
 */
export async function expectGgufFile(name: string, digest: string, blobs: Blobs): Promise<void> {
  if (name.endsWith('.gguf')) return
  const { path } = await findUploadedBlob(blobs, toDigest(digest))
  if (!(await isGguf(path))) throw invalidRequest('unknown type')
}

/** Throws `invalid_request` for a LoRA adapter that does not fit the model. */
export async function checkAdapters(
  { name, path }: Pick<UploadedGguf, 'name' | 'path'>,
  uploads: readonly UploadedGguf[],
): Promise<void> {
  const adapters = uploads.filter(({ kind }) => kind === 'adapter')
  if (adapters.length > 0) await blameRequest(checkModel({ name, path, adapters }))
}

async function findUploadedBlob(blobs: Blobs, digest: Digest): Promise<{ path: string; sizeBytes: number }> {
  const found = await blobs.find(digest)
  if (found) return found
  throw invalidRequest(`open blobs/${blobName(digest)}: no such file or directory`)
}

/** Converts the `LlmError` `upstream` to `invalid_request`, since the client sent the unusable file. */
export const blameRequest = <T>(work: Promise<T>): Promise<T> =>
  work.catch((error: unknown) => {
    const { code, message } = LlmError.from(error)
    throw code === 'upstream' ? invalidRequest(message) : error
  })
