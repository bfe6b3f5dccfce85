/** Lists, retrieves and deletes models. Shape: OpenAI API reference, "Models". */
import { json } from '../../http/respond.ts'
import type { Model } from '../../models/model.ts'
import type { Handler } from '../dialect.ts'

/** `GET /v1/models`: models by name, then aliases, since agents offer only names that are listed. */
export const listModels: Handler = async ({ llm: { models } }) => {
  const [all, aliases] = await Promise.all([models.list(), models.aliases()])
  const data = [
    ...all.map((model) => toModel(model.name, model)),
    ...aliases.map(({ alias, model }) => toModel(alias, model)),
  ]
  return json({ object: 'list', data })
}

/** `GET /v1/models/{id}` */
export const retrieveModel: Handler = async ({ request, llm }) => {
  const id = request.params.model as string
  return json(toModel(id, await llm.models.get(id)))
}

/** `DELETE /v1/models/{id}`. A loaded model stays loaded until its keep-alive ends. */
export const deleteModel: Handler = async ({ request, llm }) => {
  const id = request.params.model as string
  await llm.models.delete(id)
  return json({ id, object: 'model', deleted: true })
}

const toModel = (id: string, { modifiedAt, isBuiltIn, engine }: Model): object => ({
  id,
  object: 'model',
  created: Math.floor(modifiedAt.getTime() / 1000),
  // Not the name of the engine: clients tell by this field which fields a server takes.
  owned_by: isBuiltIn || engine !== undefined ? 'modelmount' : 'library',
})
