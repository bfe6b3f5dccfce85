/** Lists models. Shape: Ollama API reference, "List models" and "Show model details". */
import type { Capability } from '../../../models/gguf/model-details.ts'
import { isRecord } from '../../../util/is-record.ts'
import { runConcurrently } from '../../../util/run-concurrently.ts'
import { capabilities } from '../../wire/model-schema.ts'
import { readArray, readRecord, readString } from '../response-fields.ts'
import type { ListedModel } from '../upstream-api.ts'
import type { UpstreamClient } from '../upstream-client.ts'

/** Requests for the details of models that run at once. */
const concurrency = 4

/** What the list lacks or, in some versions, has wrong. */
type Details = Pick<ListedModel, 'capabilities' | 'contextSize'>

export class OllamaModels {
  /** Details of each model of the last list, by name and digest. */
  #details: ReadonlyMap<string, Details> = new Map()

  async read(client: UpstreamClient, signal: AbortSignal): Promise<readonly ListedModel[]> {
    const body = await client.readJson({ path: '/api/tags', model: '', signal })
    const listed = readArray(readRecord(body, 'the list of models').models, '`models`').map(toModel)
    const details = new Map<string, Details>()
    await runConcurrently(listed, concurrency, signal, async ({ name, digest }) => {
      const key = `${name} ${digest}`
      const found = this.#details.get(key) ?? (await readDetails(name, client, signal).catch(() => undefined))
      if (found) details.set(key, found)
    })
    this.#details = details
    return listed.map((model) => ({ ...model, ...details.get(`${model.name} ${model.digest}`) }))
  }
}

function toModel(value: unknown): ListedModel {
  const model = readRecord(value, 'a model')
  const details = isRecord(model.details) ? model.details : {}
  const modifiedAt = new Date(textOf(model.modified_at) ?? Number.NaN)
  return {
    name: readString(model.name, '`name`'),
    digest: textOf(model.digest),
    sizeBytes: countOf(model.size),
    modifiedAt: Number.isNaN(modifiedAt.getTime()) ? undefined : modifiedAt,
    architecture: textOf(details.family),
    parameterSize: textOf(details.parameter_size),
    quantization: textOf(details.quantization_level),
    contextSize: countOf(details.context_length),
    capabilities: toCapabilities(model.capabilities),
  }
}

async function readDetails(model: string, client: UpstreamClient, signal: AbortSignal): Promise<Details> {
  const body = await client.readJson({ path: '/api/show', json: { model }, model, signal })
  const { model_info: info, parameters, ...shown } = readRecord(body, 'the details of a model')
  const values = isRecord(info) ? info : {}
  const trained = countOf(values[`${values['general.architecture']}.context_length`])
  const [, own] = /^num_ctx\s+(\d+)/m.exec(textOf(parameters) ?? '') ?? []
  const contextSize = own === undefined ? trained : countOf(Number(own))
  const listed = toCapabilities(shown.capabilities)
  return { ...(listed && { capabilities: listed }), ...(contextSize && { contextSize }) }
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
const countOf = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : undefined

const toCapabilities = (value: unknown): readonly Capability[] | undefined =>
  Array.isArray(value) ? capabilities.filter((capability) => value.includes(capability)) : undefined
