/** Calls that ask nothing: they load a model, or let go of it. */
import type { Call } from '../dialect.ts'
import { detailsOf } from './models.ts'
import type { ChatRequest } from './schema.ts'
import { toLoad } from './translate.ts'

/** Says which. Throws `not_found`, and `invalid_request` for what is no name. */
export async function loadOrUnload(
  { request, llm }: Call,
  body: Pick<ChatRequest, 'model' | 'options' | 'keep_alive'>,
): Promise<'load' | 'unload'> {
  const { model = '' } = body
  await detailsOf(llm, model)
  const load = toLoad(body)
  if (load.keepAlive === 0) {
    await llm.unload(model)
    return 'unload'
  }
  await llm.load(model, { ...load, signal: request.signal })
  return 'load'
}
