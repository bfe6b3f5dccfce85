/** Lists and retrieves models. Shape: Anthropic API reference, "Models". */

import { z } from 'zod'
import type { LlmClient } from '../../calls/client.ts'
import { json } from '../../http/respond.ts'
import type { ModelDetails } from '../../models/gguf/model-details.ts'
import type { Handler } from '../dialect.ts'
import { parse } from '../parse.ts'
import { formatIssue } from './errors.ts'
import { parsePage } from './page.ts'

/** `GET /v1/models`: one page, newest first. */
export const listModels: Handler = async ({ request, llm }) => {
  const { limit, after_id, before_id } = parsePage(request)
  const lifecycle = parse(Lifecycles, request.queryAll('lifecycle[]'), formatIssue)
  // All models are active.
  const all = lifecycle.length === 0 || lifecycle.includes('active') ? await listInfos(llm) : []
  const at = all.findIndex(({ id }) => id === (after_id ?? before_id))
  // The model of `after_id` or `before_id` may have been deleted. The page is then empty.
  const rest =
    after_id !== undefined
      ? all.slice(at === -1 ? all.length : at + 1)
      : before_id !== undefined
        ? all.slice(0, Math.max(0, at))
        : all
  const data = before_id === undefined ? rest.slice(0, limit) : rest.slice(-limit)

  return json({
    data,
    has_more: data.length < rest.length,
    first_id: data.at(0)?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  })
}

const Lifecycles = z.array(
  z.enum(['active', 'deprecated', 'retired'], {
    error: "lifecycle: Input should be 'active', 'deprecated' or 'retired'",
  }),
)

/** `GET /v1/models/{id}`. For an alias, `id` is the name of its model, as in Anthropic's API. */
export const retrieveModel: Handler = async ({ request, llm }) => {
  const { name, modifiedAt, snapshot, details } = await llm.models.get(request.params.model as string)
  return json(
    toModelInfo({ id: snapshot?.id ?? name, createdAt: snapshot?.createdAt ?? modifiedAt, details }),
  )
}

/**
 * All models, their snapshots and aliases, newest first. Claude Code offers only listed ids that contain `claude` or
 * `anthropic`.
 */
async function listInfos({ models }: LlmClient): Promise<readonly ModelInfo[]> {
  const [all, snapshots, aliases] = await Promise.all([models.list(), models.snapshots(), models.aliases()])
  const listed: ListedEntry[] = [
    ...all.map(({ name, modifiedAt, details }) => ({ id: name, createdAt: modifiedAt, details })),
    ...snapshots.flatMap(({ snapshot }) => snapshot ?? []),
    ...aliases.map(({ alias, model }) => ({
      id: alias,
      createdAt: model.modifiedAt,
      details: model.details,
    })),
  ]
  return listed.sort((a, b) => b.createdAt.getTime() - a.createdAt.getTime()).map(toModelInfo)
}

interface ListedEntry {
  readonly id: string
  readonly createdAt: Date
  /** Known for the models of some engines. Others would have to be read from their files. */
  readonly details?: ModelDetails | undefined
}

type ModelInfo = Readonly<Record<string, unknown>> & { readonly id: string }

/** Facts that are unknown before a model is loaded are null, as the API allows. */
const toModelInfo = ({ id, createdAt, details }: ListedEntry): ModelInfo => ({
  type: 'model',
  id,
  display_name: id.replace(/:latest$/, ''),
  created_at: createdAt.toISOString(),
  max_input_tokens: details?.contextSize ?? null,
  max_tokens: null,
  capabilities: null,
  lifecycle: 'active',
  deprecated_at: null,
  retires_at: null,
  line: null,
})
