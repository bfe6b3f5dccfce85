/** Lists, copies and deletes models. Shape: Ollama API reference, "List models" and related sections. */
import type * as z from 'zod'
import type { LlmClient } from '../../calls/client.ts'
import { invalidRequest, LlmError } from '../../errors.ts'
import { empty, json } from '../../http/respond.ts'
import { summarizeModel } from '../../models/gguf/details.ts'
import type { ModelDetails } from '../../models/gguf/model-details.ts'
import { compareNewestFirst, type Model } from '../../models/model.ts'
import { type ModelName, parseModelName } from '../../models/ollama-store/name.ts'
import { withoutDigest } from '../../models/pinned-name.ts'
import type { Handler } from '../dialect.ts'
import { truncateForError } from '../fields.ts'
import { readBody } from './body.ts'
import { cloudDisabled } from './cloud.ts'
import { toExpiry } from './keep-alive.ts'
import { CopyRequest, NamedRequest } from './schema.ts'

/** The Ollama version that this API follows. Clients compare it to detect features. */
const apiVersion = '0.33.0'

/** `GET /api/version` */
export const getVersion: Handler = async () => json({ version: apiVersion })

/** `GET /api/tags`: newest first. */
export const listModels: Handler = async ({ llm }) => {
  const models = [...(await llm.models.list())].sort(compareNewestFirst)
  return json({ models: await Promise.all(models.map((model) => toTag(llm, model))) })
}

/** `GET /api/ps`: the latest expiry first. */
export const listLoadedModels: Handler = async ({ llm }) => {
  // A loaded model may have lost its name. Its digest then finds the model under another name.
  const all = await llm.models.list()
  const models = await Promise.all(
    llm.loaded().map(async ({ name, digest, sizeBytes, gpuBytes, contextSize, expiresAt }) => {
      const model = (await ignoreErrors(llm.models.get(name))) ?? all.find((one) => one.digest === digest)
      return {
        name,
        model: name,
        size: sizeBytes,
        digest: digest ?? model?.digest ?? '',
        details: {
          ...toDetails(model, model && (await ignoreErrors(llm.models.details(model)))),
          parent_model: '',
        },
        expires_at: toExpiry(expiresAt),
        size_vram: gpuBytes,
        context_length: contextSize,
      }
    }),
  )
  return json({ models: models.sort((a, b) => (a.expires_at > b.expires_at ? -1 : 1)) })
}

/** `POST /api/copy` */
export const copy: Handler = async ({ request, llm }) => {
  const { source = '', destination = '' } = await readBody(request, CopyRequest, 'CopyRequest')
  checkName('source', source)
  checkName('destination', destination, false)
  await llm.models.copy(source, destination, { signal: request.signal }).catch((cause) => {
    if (LlmError.from(cause).code !== 'not_found') throw cause
    throw new LlmError('not_found', `model "${source}" not found`, { param: 'source' })
  })
  return empty()
}

/** `DELETE /api/delete`. A loaded model stays loaded until its keep-alive ends. */
export const remove: Handler = async ({ request, llm }) => {
  const name = requireName(await readBody(request, NamedRequest, 'DeleteRequest'))
  checkName('name', name.trim())
  await llm.models.delete(name)
  return empty()
}

/** Returns the requested name. Throws `invalid_request` if the body contains none. */
export function requireName({ model, name }: z.output<typeof NamedRequest>): string {
  const found = model || name
  if (found) return found
  throw invalidRequest('model is required', { param: 'model' })
}

/** @param field field name for the error message */
function checkName(field: string, name: string, canHaveDigest = true): void {
  if (name !== name.trim() || !parseModelName(canHaveDigest ? withoutDigest(name) : name))
    throw invalidRequest(`${field} "${truncateForError(name)}" is invalid`, { param: field })
}

/**
 * Returns the details of a model, or `undefined` for an unknown model, which a custom engine may know. Throws
 * `invalid_request` for an invalid name, and `permission` for a cloud model. Throws the errors of
 * `llm.models.details`.
 */
export async function findDetails(llm: LlmClient, name: string): Promise<ModelDetails | undefined> {
  const model = await findModel(llm, name)
  return model && llm.models.details(model)
}

/** Finds a model like `findDetails`, but does not read its file. */
export async function findModel(llm: LlmClient, name: string): Promise<Model | undefined> {
  const model = await llm.models.get(name).catch((cause) => {
    parseMissingName(cause, name)
    return undefined
  })
  if (model?.config?.remote_host) throw cloudDisabled('remote model is unavailable')
  return model
}

/**
 * Parses the name of a missing model. Throws if the name is invalid or belongs to a cloud model. Throws
 * `cause` unless its code is `not_found`.
 */
export function parseMissingName(
  cause: unknown,
  name: string,
  reason = 'remote model is unavailable',
): ModelName {
  if (LlmError.from(cause).code !== 'not_found') throw cause
  const parsed = parseModelName(withoutDigest(name))
  if (!parsed) throw invalidRequest('invalid model name', { param: 'model' })
  if (/^(.*-)?cloud$/i.test(parsed.tag)) throw cloudDisabled(reason)
  return parsed
}

/** Returns `undefined` on errors, so that lists of models also contain a model with an unreadable file. */
const ignoreErrors = <T>(promise: Promise<T>): Promise<T | undefined> => promise.catch(() => undefined)

async function toTag(llm: LlmClient, model: Model): Promise<object> {
  const { name, sizeBytes, modifiedAt, digest } = model
  const details = await ignoreErrors(llm.models.details(model))
  return {
    name,
    model: name,
    modified_at: modifiedAt.toISOString(),
    size: sizeBytes,
    digest,
    details: {
      ...toDetails(model, details),
      ...(details?.contextSize && { context_length: details.contextSize }),
      ...(details?.embeddingSize && { embedding_length: details.embeddingSize }),
    },
    ...(details && { capabilities: details.capabilities }),
  }
}

export const toDetails = (model: Model | undefined, details: ModelDetails | undefined) => {
  const { family, families, parameterSize, quantization } = summarizeModel(model?.config, details)
  return {
    parent_model: model?.parent ?? '',
    // The file of an engine's model is not here.
    format: model?.engine === undefined ? 'gguf' : '',
    family,
    families,
    parameter_size: parameterSize,
    quantization_level: quantization,
  }
}
