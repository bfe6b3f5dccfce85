/** How the limits stood when the calls of one request were let in: for its headers, without any handler's doing. */
import type { LimitStatus } from '../errors.ts'
import type { Llm } from '../llm.ts'

export interface LimitsSeen {
  /** Whose calls are watched. */
  readonly llm: Llm
  /** As of now; of several calls, by the one that was left the least. */
  limits(): readonly LimitStatus[]
}

export function watchLimits(llm: Llm): LimitsSeen {
  const least = new Map<LimitStatus['name'], { readonly status: LimitStatus; readonly at: number }>()
  const watched =
    <Args extends readonly unknown[], Result extends { readonly limits: readonly LimitStatus[] }>(
      method: (...args: Args) => Promise<Result>,
    ) =>
    async (...args: Args): Promise<Result> => {
      const at = performance.now()
      const result = await method(...args)
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
