/** What a model process is called, and what answers say of it: the same weights, loaded in the same way, have the same name. */
import { createHash } from 'node:crypto'
import { basename, resolve } from 'node:path'
import type { Model } from '../../models/model.ts'
import { parseDigest } from '../../models/ollama-store/digest.ts'
import { protocolVersion } from './ipc/protocol.ts'

export interface ProcessIdentity {
  /** Of the process. */
  readonly name: string
  /** Of weights and settings, for clients. */
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

/** A blob is named by its content, and the same for all models that are made of it. */
/** Equal for models that share weights and adapters, whatever they are called. */
export const weightsKeyOf = ({ path, adapters = [] }: Pick<Model, 'path' | 'adapters'>): string =>
  JSON.stringify([resolve(path), ...adapters.map((adapter) => [resolve(adapter.path), adapter.scale])])

const partsOf = ({ path, sizeBytes, modifiedAt }: Pick<Model, 'path' | 'sizeBytes' | 'modifiedAt'>) =>
  parseDigest(basename(path)) ? [resolve(path)] : [resolve(path), sizeBytes, modifiedAt.getTime()]
