/**
 * What of the calls that one request makes is no handler's business: by which API they came, for the ledger; that counting and
 * rendering prompts is limited, too; and how the limits stood when they were let in, for the headers.
 */
import type { Caller } from '../accounts/auth/caller.ts'
import type { LimitStatus } from '../errors.ts'
import type { Llm, UnaryCallOptions } from '../llm.ts'

export interface WatchedCalls {
  /** What the caller's calls go through. */
  of(caller: Caller): Llm
  /** As of now; of several calls, by the one that was left the least. */
  limits(): readonly LimitStatus[]
}

export function watchCalls(llm: Llm, dialect: string): WatchedCalls {
  const least = new Map<LimitStatus['name'], { readonly status: LimitStatus; readonly at: number }>()
  const note = (limits: readonly LimitStatus[]): void => {
    const at = performance.now()
    for (const status of limits) {
      const other = least.get(status.name)
      if (!other || status.remaining < other.status.remaining) least.set(status.name, { status, at })
    }
  }
  const watched =
    <Request, Call extends UnaryCallOptions, Result>(
      method: (request: Request, call: Call) => Promise<Result>,
    ) =>
    (request: Request, call: Call): Promise<Result> =>
      method(request, { ...call, dialect, onLimits: note })
  const admit: Llm['admit'] = async (caller, kind) => {
    const limits = await llm.admit(caller, kind)
    note(limits)
    return limits
  }
  const counted =
    <Given extends unknown[], Result>(caller: Caller, method: (...given: Given) => Promise<Result>) =>
    async (...given: Given): Promise<Result> => {
      await admit(caller, 'count')
      return method(...given)
    }

  return {
    of: (caller) => ({
      ...llm,
      admit,
      generate: watched(llm.generate),
      embed: watched(llm.embed),
      rerank: watched(llm.rerank),
      countTokens: counted(caller, llm.countTokens),
      render: counted(caller, llm.render),
    }),
    // A whole answer can take minutes.
    limits: () =>
      [...least.values()].map(({ status, at }) => ({
        ...status,
        resetMs: Math.max(0, Math.ceil(status.resetMs - (performance.now() - at))),
      })),
  }
}
