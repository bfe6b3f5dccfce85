/** What models there are, which are loaded, and what one is. Shape: Ollama API reference, "List models" and the like. */
import { invalidRequest, LlmError, modelNotFound } from '../../errors.ts'
import { json } from '../../http/respond.ts'
import type { Llm } from '../../llm.ts'
import type { ModelDetails } from '../../models/details.ts'
import { displayName, type ModelName, parseModelName } from '../../models/name.ts'
import { type Model, newestFirst } from '../../models/store.ts'
import type { Handler } from '../dialect.ts'
import { parse } from '../parse.ts'
import { wording } from './errors.ts'
import { toExpiry } from './keep-alive.ts'
import { ShowRequest } from './schema.ts'

/** The version of the API that is spoken here. Clients compare it to know what they may ask. */
const apiVersion = '0.33.0'

/** `GET /api/version` */
export const version: Handler = async () => json({ version: apiVersion })

/** `GET /api/tags`: the newest first. */
export const tags: Handler = async ({ llm }) => {
  const models = [...(await llm.models.list())].sort(newestFirst)
  return json({ models: await Promise.all(models.map((model) => toTag(llm, model))) })
}

/** `GET /api/ps`: what stays longest first. */
export const running: Handler = async ({ llm }) => {
  const models = await Promise.all(
    llm.loaded().map(async ({ name, sizeBytes, gpuBytes, contextSize, expiresAt }) => {
      const model = await quietly(llm.models.get(name))
      return {
        name,
        model: name,
        size: sizeBytes,
        digest: model?.digest ?? '',
        details: toDetails(model && (await quietly(llm.models.details(model)))),
        expires_at: toExpiry(expiresAt),
        size_vram: gpuBytes,
        context_length: contextSize,
      }
    }),
  )
  return json({ models: models.sort((a, b) => (a.expires_at > b.expires_at ? -1 : 1)) })
}

/** `POST /api/show` */
export const show: Handler = async ({ request, llm }) => {
  const body = parse(ShowRequest, await request.json(), wording)
  const name = body.model || body.name
  if (!name) throw invalidRequest('model is required', { param: 'model' })
  const model = await llm.models.get(name).catch((cause) => {
    throw modelNotFound(displayName(missingName(cause, name)))
  })
  const details = await llm.models.details(model, { arrays: body.verbose ?? false })
  return json({
    modelfile: modelfile(model),
    template: details.chatTemplate ?? noTemplate,
    ...(body.system && { system: body.system }),
    details: toDetails(details),
    model_info: toModelInfo(details),
    tensors: details.tensors,
    capabilities: details.capabilities,
    modified_at: model.modifiedAt.toISOString(),
  })
}

/** Nothing of a model that is not there: an engine of the app's own may know it. Throws `invalid_request` for what is no name. */
export const detailsOf = (llm: Llm, name: string): Promise<ModelDetails | undefined> =>
  llm.models.details(name).catch((cause) => {
    missingName(cause, name)
    return undefined
  })

/** The name of a model that is not there, and could be. Throws where something else is wrong. */
function missingName(cause: unknown, name: string): ModelName {
  if (LlmError.from(cause).code !== 'not_found') throw cause
  const parsed = parseModelName(name)
  if (!parsed) throw invalidRequest('invalid model name', { param: 'model' })
  if (/^(.*-)?cloud$/i.test(parsed.tag))
    throw new LlmError('permission', `there is no cloud behind this server: '${name}' is unavailable`)
  return parsed
}

/** A file that cannot be read is there all the same. */
const quietly = <T>(promise: Promise<T>): Promise<T | undefined> => promise.catch(() => undefined)

async function toTag(llm: Llm, model: Model): Promise<object> {
  const { name, sizeBytes, modifiedAt, digest } = model
  const details = await quietly(llm.models.details(model))
  return {
    name,
    model: name,
    modified_at: modifiedAt.toISOString(),
    size: sizeBytes,
    digest,
    details: {
      ...toDetails(details),
      ...(details?.contextSize && { context_length: details.contextSize }),
      ...(details?.embeddingSize && { embedding_length: details.embeddingSize }),
    },
    ...(details && { capabilities: details.capabilities }),
  }
}

const toDetails = (details: ModelDetails | undefined) => ({
  parent_model: '',
  format: 'gguf',
  family: details?.architecture ?? '',
  families: details ? [details.architecture] : null,
  parameter_size: details?.parameterSize ?? '',
  quantization_level: details?.quantization ?? '',
})

/** All that the file says of itself, but what is elsewhere in the answer. */
function toModelInfo({ metadata, parameterCount }: ModelDetails): object {
  const info: Record<string, unknown> = {
    'general.quantization_version': quantizationVersion,
    ...metadata,
    'general.parameter_count': parameterCount,
  }
  delete info['general.name']
  delete info['tokenizer.chat_template']
  return Object.fromEntries(Object.entries(info).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** What llama.cpp takes where a file does not say. */
const quantizationVersion = 2

const noTemplate = '{{ .Prompt }}'

/** By its name: where the file lies is nobody's business. */
const modelfile = ({ name }: Model): string =>
  [
    '# Modelfile generated by "ollama show"',
    '# To build a new Modelfile based on this, replace FROM with:',
    `# FROM ${name}`,
    '',
    `FROM ${name}`,
    `TEMPLATE ${noTemplate}`,
    '',
  ].join('\n')
