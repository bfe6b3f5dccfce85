/** The road of what is read and not answered, vectors and ranks: it is let in, paid and counted like an answer. */
import { nanoid } from 'nanoid'
import { estimateTokens, type Metering } from '../accounts/usage/metering.ts'
import { sanitizeUsage } from '../accounts/usage/sanitize-usage.ts'
import { type TokenUsage, uncached } from '../engine/events.ts'
import type { LimitStatus } from '../errors.ts'
import type { CallOptions } from './generate.ts'

export interface PoolingInput {
  /** As it is called in prices, limits and the ledger. */
  readonly model: string
  /** Each read for itself. */
  readonly texts: readonly (string | readonly number[])[]
}

/** What is read, and how the limits stood when the call was let in. */
export type WithLimitStatus<Result> = Result & { readonly limits: readonly LimitStatus[] }

/** Throws `rate_limit` and `quota` for callers that are not let in, and what `work` throws. */
export async function read<Result extends { readonly inputTokens: number }>(
  { model, texts }: PoolingInput,
  { caller, dialect, signal, onLimits }: CallOptions,
  metering: Metering,
  work: () => Promise<Result>,
): Promise<WithLimitStatus<Result>> {
  const bytes = texts.reduce(
    (sum, text) => sum + (typeof text === 'string' ? Buffer.byteLength(text) : 4 * text.length),
    0,
  )
  const meter = await metering.begin({
    id: nanoid(),
    caller,
    model,
    dialect,
    estimatedInputTokens: estimateTokens(bytes, texts.length),
    maxTokens: 0,
    isUnqueued: true,
  })
  if (!meter) return { ...(await work()), limits: [] }
  onLimits?.(meter.limits)
  let usage: TokenUsage | undefined
  try {
    await meter.admit(signal, async () => ({ inputTokens: mostTokens(texts), outputTokens: 0 }))
    signal.throwIfAborted()
    const result = await work()
    usage = sanitizeUsage({ ...uncached, inputTokens: result.inputTokens, reusedTokens: 0, outputTokens: 0 })
    return { ...result, limits: meter.limits }
  } finally {
    await meter.settle(usage, usage ? 'ended' : signal.aborted ? 'aborted' : 'failed')
  }
}

/** No token is shorter than a byte; some stand around each text. */
const mostTokens = (texts: PoolingInput['texts']): number =>
  texts.reduce(
    (sum, text) => sum + (typeof text === 'string' ? Buffer.byteLength(text) : text.length) + around,
    0,
  )

const around = 8
