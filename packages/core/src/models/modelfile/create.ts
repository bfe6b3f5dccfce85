/**
 * Creates a model from a base model or files, with the settings of a Modelfile. Follows Ollama's
 * `server/create.go`.
 */
import { parseDigest } from '../ollama-store/digest.ts'
import {
  configMediaType,
  digestsOf,
  type Layer,
  manifestMediaType,
  mediaTypeOf,
} from '../ollama-store/manifest.ts'
import { expectName, expectStorable, parseExactName, parseModelName } from '../ollama-store/name.ts'
import { loadWeightsFromFiles, loadWeightsFromModel } from '../ollama-store/weights.ts'
import { withoutDigest } from '../pinned-name.ts'
import type { Progress, TransferOptions } from '../registry/progress.ts'
import { checkCreate } from './create-check.ts'
import { createConfig } from './create-config.ts'
import type { CreateDependencies, CreateModelRequest } from './create-request.ts'
import { stringifyGoJson } from './go-json.ts'
import { expectWithinLimits, planLayers } from './layers.ts'

/**
 * Yields several `Progress` objects. The last has status `success`. An uploaded blob becomes a layer without
 * conversion. If the request is invalid, throws `invalid_request` before the first `Progress`. Later, throws
 * `invalid_request` for an invalid file, and the errors of `pull`. When the signal aborts, returns without an
 * error.
 */
export async function* createModel(
  request: CreateModelRequest,
  dependencies: CreateDependencies,
  options: TransferOptions,
): AsyncGenerator<Progress, void> {
  const spec = resolveBlobSource(request)
  checkCreate(spec)
  try {
    yield* createLayers(spec, dependencies, options)
  } catch (error) {
    if (!options.signal.aborted) throw error
  }
}

async function* createLayers(
  spec: CreateModelRequest,
  dependencies: CreateDependencies,
  options: TransferOptions,
): AsyncGenerator<Progress, void> {
  const { blobs, manifests } = dependencies
  const name = expectName(parseExactName(spec.name))
  expectStorable(name)
  const weights = spec.from
    ? yield* loadWeightsFromModel(
        expectName(parseModelName(withoutDigest(spec.from))),
        spec,
        dependencies,
        options,
      )
    : yield* loadWeightsFromFiles(spec, dependencies)

  const layerPlan = planLayers(spec, weights)
  const configText = stringifyGoJson(createConfig(spec, weights))
  expectWithinLimits(layerPlan, configText)
  const layers: Layer[] = [...layerPlan.inherited]
  const statuses = layers.map(({ digest }) => `using existing layer ${digest}`)
  for (const [kind, text] of layerPlan.added) {
    const { digest, sizeBytes: size, isNew } = await blobs.add(Buffer.from(text))
    layers.push({ mediaType: mediaTypeOf(kind), digest, size })
    statuses.push(`${isNew ? 'creating new' : 'using existing'} layer ${digest}`)
  }
  const config = await blobs.add(Buffer.from(configText))
  for (const status of statuses) yield { status }

  if (options.signal.aborted) return
  yield { status: 'writing manifest' }
  const manifest = {
    schemaVersion: 2,
    mediaType: manifestMediaType,
    config: { mediaType: configMediaType, digest: config.digest, size: config.sizeBytes },
    layers,
  }
  const before = await manifests.write(name, Buffer.from(stringifyGoJson(manifest)))
  if (before && dependencies.prune) await manifests.prune(digestsOf(before))
  yield { status: 'success' }
}

/** Converts `from: 'sha256-…'` to an uploaded file. Modelfiles refer to uploaded weights this way. */
function resolveBlobSource({ from, ...spec }: CreateModelRequest): CreateModelRequest {
  if (from === undefined) return spec
  const digest = parseDigest(from)
  return digest ? { ...spec, files: { [from]: digest } } : { ...spec, from }
}
