/** Finds models that the list of models omits, because their manifests are damaged. */
import { BlobStore } from '../models/ollama-store/blobs.ts'
import { ManifestStore } from '../models/ollama-store/manifests.ts'

/** Returns the names of the models. @param folders folders of models, in Ollama's layout */
export const findDamagedManifests = (folders: readonly string[]): Promise<readonly string[]> =>
  new ManifestStore(folders, new BlobStore(folders)).listDamaged()
