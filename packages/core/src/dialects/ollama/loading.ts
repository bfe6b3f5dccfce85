/** Loads or unloads a model, for requests without a prompt. */
import type { LoadOptions } from '../../engine/request.ts'
import { LlmError } from '../../errors.ts'
import { parseNameKey } from '../../models/ollama-store/name.ts'
import type { RouteCall } from '../dialect.ts'
import { findDetails, findModel } from './models.ts'
import type { ChatRequest } from './schema.ts'
import { toLoad } from './translate.ts'

/**
 * Loads a model, or unloads it if the keep-alive is 0. Throws `not_found`, and `invalid_request` for an
 * invalid name. Throws `permission` if the request needs the scope `models` and the API key lacks it.
 */
export async function loadOrUnload(
  call: RouteCall,
  body: Pick<ChatRequest, 'model' | 'options' | 'keep_alive'>,
): Promise<'load' | 'unload'> {
  const { request, llm } = call
  const { model = '' } = body
  const load = toLoad(body)
  if (requiresModelsScope(call, model, load)) throw createScopeError()
  if (load.keepAlive === 0) {
    await findModel(llm, model)
    await llm.unload(model)
    return 'unload'
  }
  await findDetails(llm, model)
  await llm.load(model, { ...load, signal: request.signal })
  return 'load'
}

/** Callers share a loaded model, so unloading it or changing its context size needs the scope `models`. */
function requiresModelsScope(
  { llm, caller }: RouteCall,
  model: string,
  { keepAlive, contextSize }: LoadOptions,
): boolean {
  if (!caller.key || caller.scopes?.includes('models')) return false
  if (keepAlive === 0) return true
  const loaded = llm.loaded().find(({ name }) => parseNameKey(name) === parseNameKey(model))
  return contextSize !== undefined && contextSize !== loaded?.contextSize
}

const createScopeError = (): LlmError =>
  new LlmError(
    'permission',
    "To unload a model, or to load it with another context size, a key needs the scope 'models'.",
  )
