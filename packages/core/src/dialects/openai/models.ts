/** Lists and retrieves models. Shape: OpenAI API reference, "The model object". */
import { json } from '../../http/respond.ts'
import type { Model } from '../../models/model.ts'
import type { Handler } from '../dialect.ts'

/** `GET /v1/models` */
export const listModels: Handler = async ({ llm }) =>
  json({ object: 'list', data: (await llm.models.list()).map((model) => toModel(model.name, model)) })

/** `GET /v1/models/{id}` */
export const retrieveModel: Handler = async ({ request, llm }) => {
  const id = request.params.model as string
  return json(toModel(id, await llm.models.get(id)))
}

const toModel = (id: string, { modifiedAt, isBuiltIn }: Model): object => ({
  id,
  object: 'model',
  created: Math.floor(modifiedAt.getTime() / 1000),
  owned_by: isBuiltIn ? 'modelmount' : 'library',
})
