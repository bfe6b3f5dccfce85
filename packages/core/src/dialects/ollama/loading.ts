/** Loads or unloads a model, for requests without a prompt. */
import type { RouteCall } from '../dialect.ts'
import { findDetails, findModel } from './models.ts'
import type { ChatRequest } from './schema.ts'
import { toLoad } from './translate.ts'

/**
 * Loads a model, or unloads it if the keep-alive is 0. Throws `not_found`, and `invalid_request` for an
 * invalid name. Throws `permission` if the caller lacks the scope `models` and the request unloads the model,
 * or asks for a larger context than the loaded one.
 */
export async function loadOrUnload(
  { request, llm }: RouteCall,
  body: Pick<ChatRequest, 'model' | 'options' | 'keep_alive'>,
): Promise<'load' | 'unload'> {
  const { model = '' } = body
  const load = toLoad(body)
  if (load.keepAlive === 0) {
    await findModel(llm, model)
    await llm.unload(model)
    return 'unload'
  }
  await findDetails(llm, model)
  await llm.load(model, { ...load, signal: request.signal })
  return 'load'
}
