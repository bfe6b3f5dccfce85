/** Names and fingerprints of model processes: the same weights with the same load settings get the same name. */
import { createHash } from 'node:crypto'
import { basename, resolve } from 'node:path'
import type { Model } from '../../models/model.ts'
import { parseDigest } from '../../models/ollama-store/digest.ts'
import { protocolVersion } from './ipc/process-config.ts'

export interface ProcessIdentity {
  /** Names the socket and the record of the process. */
  readonly name: string
  /** Shown to clients. */
  readonly fingerprint: string
}

export function identifyProcess(
  { adapters = [], ...file }: Pick<Model, 'path' | 'sizeBytes' | 'modifiedAt' | 'adapters'>,
  load: Readonly<Record<string, unknown>>,
): ProcessIdentity {
  const adapted = adapters.map((adapter) => [...partsOf(adapter), adapter.scale])
  const parts = [protocolVersion, ...partsOf(file), load, ...adapted]
  const digest = createHash('sha256').update(JSON.stringify(parts)).digest('hex')
  return { name: digest.slice(0, 16), fingerprint: `fp_${digest.slice(0, 12)}` }
}

/** Equal for models that share weights and adapters, whatever their names are. */
export const weightsKeyOf = ({ path, adapters = [] }: Pick<Model, 'path' | 'adapters'>): string =>
  JSON.stringify([resolve(path), ...adapters.map((adapter) => [resolve(adapter.path), adapter.scale])])

/** A blob's name is the digest of its content; any other file is identified by size and date, too. */
const partsOf = ({ path, sizeBytes, modifiedAt }: Pick<Model, 'path' | 'sizeBytes' | 'modifiedAt'>) =>
  parseDigest(basename(path)) ? [resolve(path)] : [resolve(path), sizeBytes, modifiedAt.getTime()]
