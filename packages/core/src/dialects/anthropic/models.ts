/** Lists and retrieves models. Shape: Anthropic API reference, "Models". */
import { json } from '../../http/respond.ts'
import { compareNewestFirst, type Model } from '../../models/model.ts'
import type { Handler } from '../dialect.ts'
import { parsePage } from './page.ts'

/** `GET /v1/models`: one page, newest first. */
export const listModels: Handler = async ({ request, llm }) => {
  const { limit, after_id, before_id } = parsePage(request)
  const all = [...(await llm.models.list())].sort(compareNewestFirst)
  const at = all.findIndex(({ name }) => name === (after_id ?? before_id))
  // The model of `after_id` or `before_id` may have been deleted. The page is then empty.
  const rest =
    after_id !== undefined
      ? all.slice(at === -1 ? all.length : at + 1)
      : before_id !== undefined
        ? all.slice(0, Math.max(0, at))
        : all
  const data = before_id === undefined ? rest.slice(0, limit) : rest.slice(-limit)

  return json({
    data: data.map(toModelInfo),
    has_more: data.length < rest.length,
    first_id: data.at(0)?.name ?? null,
    last_id: data.at(-1)?.name ?? null,
  })
}

/** `GET /v1/models/{id}` */
export const retrieveModel: Handler = async ({ request, llm }) =>
  json(toModelInfo(await llm.models.get(request.params.model as string)))

/** Facts that are unknown before a model is loaded are null, as the API allows. */
const toModelInfo = ({ name, modifiedAt }: Model): object => ({
  type: 'model',
  id: name,
  display_name: name.replace(/:latest$/, ''),
  created_at: modifiedAt.toISOString(),
  max_input_tokens: null,
  max_tokens: null,
  capabilities: null,
  lifecycle: 'active',
  deprecated_at: null,
  retires_at: null,
  line: null,
})
