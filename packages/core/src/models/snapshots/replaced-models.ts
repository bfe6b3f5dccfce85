/** Reads versions of models whose manifests have been replaced. */
import type { ModelSnapshot } from '../model.ts'
import { digestOf, hexOf } from '../ollama-store/digest.ts'
import { parseManifest } from '../ollama-store/manifest.ts'
import { displayName, parseExactName } from '../ollama-store/name.ts'
import type { ManifestEntry } from '../ollama-store/store-contracts.ts'
import type { SnapshotRecord } from './snapshot-file.ts'

export const snapshotOf = ({ id, createdAt }: SnapshotRecord): ModelSnapshot => ({
  id,
  createdAt: new Date(createdAt),
})

export const versionKeyOf = ({ name, digest }: ManifestEntry): string =>
  `${displayName(name)} ${hexOf(digest)}`

/** Returns `undefined` if the manifest was not kept. */
export function toReplacedEntry({
  name: text,
  digest: hex,
  createdAt,
  manifest: json = '',
}: SnapshotRecord): ManifestEntry | undefined {
  const bytes = Buffer.from(json)
  const [name, manifest, digest] = [parseExactName(text), parseManifest(bytes), digestOf(bytes)]
  if (!name || !manifest || hexOf(digest) !== hex) return undefined
  return { name, manifest, bytes, digest, modifiedAt: new Date(createdAt), root: '', isReadOnly: true }
}
