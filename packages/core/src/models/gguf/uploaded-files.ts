/** GGUF files among the blobs that a model is to be made of. */
import { invalidRequest, LlmError } from '../../errors.ts'
import type { CreateModel } from '../modelfile/create.ts'
import { blobName, type Digest, toDigest } from '../ollama-store/digest.ts'
import { type Layer, layerType } from '../ollama-store/manifest.ts'
import type { Blobs } from '../ollama-store/store-contracts.ts'
import type { Progress } from '../registry/progress.ts'
import { checkModel } from './check.ts'
import { type ModelDetails, readDetails } from './details.ts'
import { fileOf, type Gguf, readGguf } from './gguf.ts'
import { type GgufKind, ggufKind, isGguf } from './kind.ts'

export interface Upload {
  readonly kind: GgufKind
  readonly name: string
  readonly path: string
  readonly layer: Layer
  readonly details: ModelDetails
}
/** The order in which their layers are written. */
export const uploadKinds: readonly GgufKind[] = ['model', 'projector', 'adapter']

/** What the files are, in their order. Throws `invalid_request` from the first on that is no part of a model. */
export async function* uploadsOf(
  files: Readonly<Record<string, string>> = {},
  blobs: Blobs,
): AsyncGenerator<Progress, readonly Upload[]> {
  const uploads: Upload[] = []
  for (const [name, digest] of Object.entries(files)) {
    yield { status: 'parsing GGUF' }
    uploads.push(await uploadOf(name, toDigest(digest), blobs))
  }
  return uploads
}

/** Throws `invalid_request` for what is none. */
export async function* adaptersOf(
  files: CreateModel['adapters'],
  blobs: Blobs,
): AsyncGenerator<Progress, readonly Upload[]> {
  const uploads = yield* uploadsOf(files, blobs)
  const other = uploads.find(({ kind }) => kind !== 'adapter')
  if (other) throw invalidRequest(`the file "${other.name}" is no adapter`)
  return uploads
}

async function uploadOf(name: string, digest: Digest, blobs: Blobs): Promise<Upload> {
  const { path, sizeBytes: size } = await findUpload(blobs, digest)
  if (!(await isGguf(path))) throw invalidRequest('supplied file was not in GGUF format')
  const { metadata, isWhole } = await asInput(readGguf(path, { what: fileOf(name) }))
  if (!isWhole)
    throw invalidRequest(`The ${fileOf(name)} cannot be used: it was cut off, and weights are missing.`)
  expectOneFile(name, metadata)
  const kind = ggufKind(metadata)
  const details = await asInput(readDetails({ name, path }))
  const layer = { mediaType: layerType(kind), digest, size, ...(kind === 'adapter' && { from: name }) }
  return { kind, name, path, layer, details }
}

/** A layer is one file. Throws `invalid_request`. */
export function expectOneFile(name: string, metadata: Gguf['metadata']): void {
  if (Number(metadata['split.count'] ?? 1) > 1)
    throw invalidRequest(
      `split GGUF "${name}" cannot be stored: make one file of its parts first (llama-gguf-split --merge)`,
    )
}

/** A name tells, or else the first bytes do. Throws `invalid_request`. */
export async function expectKnownType(name: string, digest: string, blobs: Blobs): Promise<void> {
  if (name.endsWith('.gguf')) return
  const { path } = await findUpload(blobs, toDigest(digest))
  if (!(await isGguf(path))) throw invalidRequest('unknown type')
}

/** Whether they fit. Throws `invalid_request`. */
export async function checkAdapters(
  { name, path }: Pick<Upload, 'name' | 'path'>,
  uploads: readonly Upload[],
): Promise<void> {
  const adapters = uploads.filter(({ kind }) => kind === 'adapter')
  if (adapters.length > 0) await asInput(checkModel({ name, path, adapters }))
}

async function findUpload(blobs: Blobs, digest: Digest): Promise<{ path: string; sizeBytes: number }> {
  const found = await blobs.find(digest)
  if (found) return found
  throw invalidRequest(`open blobs/${blobName(digest)}: no such file or directory`)
}

/** What is wrong with a file is for those to mend who sent it. */
export const asInput = <T>(work: Promise<T>): Promise<T> =>
  work.catch((error: unknown) => {
    const { code, message } = LlmError.from(error)
    throw code === 'upstream' ? invalidRequest(message) : error
  })
