/**
 * What of the calls that one request makes is no handler's business: by which API they came, for the ledger, and how the limits
 * stood when they were let in, for the headers.
 */
import type { LimitStatus } from '../errors.ts'
import type { Llm, QuietCall } from '../llm.ts'

export interface WatchedCalls {
  /** Whose calls they are. */
  readonly llm: Llm
  /** As of now; of several calls, by the one that was left the least. */
  limits(): readonly LimitStatus[]
}

export function watchCalls(llm: Llm, dialect: string): WatchedCalls {
  const least = new Map<LimitStatus['name'], { readonly status: LimitStatus; readonly at: number }>()
  const watched =
    <Request, Call extends QuietCall, Result extends { readonly limits: readonly LimitStatus[] }>(
      method: (request: Request, call: Call) => Promise<Result>,
    ) =>
    async (request: Request, call: Call): Promise<Result> => {
      const at = performance.now()
      const result = await method(request, { ...call, dialect })
      for (const status of result.limits) {
        const other = least.get(status.name)
        if (!other || status.remaining < other.status.remaining) least.set(status.name, { status, at })
      }
      return result
    }

  return {
    llm: {
      ...llm,
      generate: watched(llm.generate),
      embed: watched(llm.embed),
      rerank: watched(llm.rerank),
    },
    // A whole answer can take minutes.
    limits: () =>
      [...least.values()].map(({ status, at }) => ({
        ...status,
        resetMs: Math.max(0, Math.ceil(status.resetMs - (performance.now() - at))),
      })),
  }
}
