/** Calls that request a larger context than the loaded one, but may not choose it. */
import { describeDeniedContext, LlmError } from '../../errors.ts'
import type { Model } from '../../models/model.ts'
import type { ModelStore } from '../../models/store.ts'
import type { LoadedProcess } from './loaded-process.ts'

/** Whether the loaded context is smaller than requested, although the model was trained for a larger one. */
export async function isContextDenied(
  model: Model,
  requested: number,
  { process }: LoadedProcess,
  models: Pick<ModelStore, 'details'>,
): Promise<boolean> {
  const { contextSize = Number.POSITIVE_INFINITY } = process.footprint ?? {}
  if (requested <= contextSize) return false
  // The file of a loaded model may be gone.
  const details = await models.details(model).catch(() => undefined)
  return (details?.contextSize ?? Number.POSITIVE_INFINITY) > contextSize
}

/** A prompt that would fit the denied context must not lose its oldest messages silently. */
export const withoutTruncation = <Request extends object>(
  request: Request,
  deniedContextSize: number | undefined,
): Request => (deniedContextSize === undefined ? request : { ...request, overflow: 'error' })

/** Adds the denied context size to the error for a prompt that does not fit. */
export function nameDeniedContext(cause: unknown, requestedContextSize: number): unknown {
  if (!LlmError.is(cause) || cause.code !== 'context_length') return cause
  const message = `${cause.message} ${describeDeniedContext('contextSize', requestedContextSize)}`
  return new LlmError('context_length', message, { ...cause.details, requestedContextSize })
}
