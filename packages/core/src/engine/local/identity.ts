/**
 * Names and fingerprints of model processes. They are equal for the same weights with the same load settings, in
 * the same version of this package. The settings contain the version of node-llama-cpp.
 */
import { createHash } from 'node:crypto'
import { basename, resolve } from 'node:path'
import type { Model } from '../../models/model.ts'
import { parseDigest } from '../../models/ollama-store/digest.ts'
import { packageVersion, protocolVersion } from './ipc/process-config.ts'

export interface ProcessIdentity {
  /** File name of the socket and of the record of the process, without the extension. */
  readonly name: string
  /** Identifies the weights, load settings and versions. Responses contain it. */
  readonly fingerprint: string
}

export function identifyProcess(
  { adapters = [], ...file }: Pick<Model, 'path' | 'sizeBytes' | 'modifiedAt' | 'adapters'>,
  load: Readonly<Record<string, unknown>>,
): ProcessIdentity {
  const adapted = adapters.map((adapter) => [...partsOf(adapter), adapter.scale])
  const parts = [packageVersion, protocolVersion, ...partsOf(file), load, ...adapted]
  const digest = createHash('sha256').update(JSON.stringify(parts)).digest('hex')
  return { name: digest.slice(0, 16), fingerprint: `fp_${digest.slice(0, 12)}` }
}

/** Key that is equal for models with the same weights and adapters, even under different names. */
export const weightsKeyOf = ({ path, adapters = [] }: Pick<Model, 'path' | 'adapters'>): string =>
  JSON.stringify([resolve(path), ...adapters.map((adapter) => [resolve(adapter.path), adapter.scale])])

/**
 * Returns what identifies the content of a file. The path of a blob is enough, since its file name is its
 * digest. For other files, size and date are needed too.
 */
const partsOf = ({ path, sizeBytes, modifiedAt }: Pick<Model, 'path' | 'sizeBytes' | 'modifiedAt'>) =>
  parseDigest(basename(path)) ? [resolve(path)] : [resolve(path), sizeBytes, modifiedAt.getTime()]
