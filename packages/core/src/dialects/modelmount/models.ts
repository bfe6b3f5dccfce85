/** Lists the models of this app for other apps with Modelmount. */
import type { LlmClient } from '../../calls/client.ts'
import type { ModelEntry } from '../../engine/wire/model-schema.ts'
import { json } from '../../http/respond.ts'
import type { Model } from '../../models/model.ts'
import type { Handler } from '../dialect.ts'

/** `GET /modelmount/v1/models` */
export const listModels: Handler = async ({ llm }) => {
  const models = await llm.models.list()
  return json({ models: await Promise.all(models.map((model) => toEntry(llm, model))) })
}

async function toEntry(llm: LlmClient, model: Model): Promise<ModelEntry> {
  const { name, digest, sizeBytes, modifiedAt, defaults, config } = model
  // The file of one model may be broken.
  const details = await llm.models.details(model).catch(() => undefined)
  return {
    ...{ name, digest, sizeBytes, modifiedAt: modifiedAt.getTime() },
    ...(details && { details: { ...details, tensors: [] } }),
    ...(defaults && { defaults }),
    ...(config && { config }),
  }
}
