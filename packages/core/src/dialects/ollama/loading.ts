/** Loads or unloads a model, for requests without a prompt. */
import type { ClientUnaryOptions, LoadProgressOption } from '../../calls/client.ts'
import type { LoadProgress } from '../../engine/events.ts'
import { readAhead } from '../../util/read-ahead.ts'
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
  { request, llm }: Pick<RouteCall, 'request' | 'llm'>,
  body: Pick<ChatRequest, 'model' | 'options' | 'keep_alive'>,
  options: LoadProgressOption & Pick<ClientUnaryOptions, 'signal'> = {},
): Promise<'load' | 'unload'> {
  const { model = '' } = body
  const load = toLoad(body)
  if (load.keepAlive === 0) {
    await findModel(llm, model)
    await llm.unload(model)
    return 'unload'
  }
  await findDetails(llm, model)
  await llm.load(model, { ...load, signal: request.signal, ...options })
  return 'load'
}

/**
 * Loads a model, and yields the progress of the load, and at the end what `loadOrUnload` returns. Waits for the first of
 * them, so that an earlier failure has its own status code.
 */
export async function watchLoad(
  call: RouteCall,
  body: Pick<ChatRequest, 'model' | 'options' | 'keep_alive'>,
): Promise<AsyncIterable<LoadProgress | 'load' | 'unload'>> {
  const steps = readAhead<LoadProgress | 'load' | 'unload'>(call.request.signal, async (push, signal) => {
    push(await loadOrUnload(call, body, { signal, onProgress: push }))
  })
  const first = await steps.next()
  return (async function* () {
    if (first.done) return
    yield first.value
    yield* steps
  })()
}
