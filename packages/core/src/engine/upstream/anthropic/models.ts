/** Lists models. Shape: Anthropic API reference, "List Models". */
import type { Capability } from '../../../models/gguf/model-details.ts'
import { isRecord } from '../../../util/is-record.ts'
import { readArray, readCount, readOptionalString, readRecord, readString } from '../response-fields.ts'
import type { ListedModel } from '../upstream-api.ts'
import type { UpstreamClient } from '../upstream-client.ts'

/** Models per page, at most. */
const pageSize = 1_000
/** A server whose list never ends would otherwise hold the call. */
const maxPages = 20

export async function readModels(
  client: UpstreamClient,
  signal: AbortSignal,
): Promise<readonly ListedModel[]> {
  const models: ListedModel[] = []
  let after = ''
  for (let page = 0; page < maxPages; page++) {
    const path = `/v1/models?limit=${pageSize}${after && `&after_id=${encodeURIComponent(after)}`}`
    const body = readRecord(await client.readJson({ path, model: '', signal }), 'the list of models')
    const found = readArray(body.data, '`data`')
    models.push(...found.map(toModel))
    const last = readOptionalString(body.last_id, '`last_id`')
    if (body.has_more !== true || found.length === 0 || !last) break
    after = last
  }
  return models
}

function toModel(value: unknown): ListedModel {
  const { id, created_at: createdAt, max_input_tokens: size, capabilities } = readRecord(value, 'a model')
  const modifiedAt = typeof createdAt === 'string' ? new Date(createdAt) : undefined
  return {
    name: readString(id, '`id`'),
    contextSize: readCount(size, '`max_input_tokens`') || undefined,
    ...(isRecord(capabilities) && { capabilities: toCapabilities(capabilities) }),
    ...(modifiedAt && !Number.isNaN(modifiedAt.getTime()) && { modifiedAt }),
  }
}

function toCapabilities(listed: Record<string, unknown>): readonly Capability[] {
  const has = (name: string): boolean => isRecord(listed[name]) && listed[name].supported === true
  return [
    'completion',
    'tools',
    ...(has('thinking') ? (['thinking'] as const) : []),
    ...(has('image_input') ? (['vision'] as const) : []),
  ]
}
