/** Outcomes of the calls of a storm, and how long polite tenants waited for their first token. */

/** A response, or the reason why a connection ended without one. */
export type Outcome =
  | { readonly status: number; readonly retryAfter: boolean; readonly body: string }
  | { readonly closed: string }

export class Outcomes {
  /** Time to the first token of each call of a polite tenant, in milliseconds. */
  readonly firstTokensMs: number[] = []
  /** Number of outcomes by kind of tenant and status. */
  readonly counts = new Map<string, number>()
  /** Outcomes that no client may get, at most one of each kind. */
  readonly forbidden = new Map<string, string>()

  add(kind: string, outcome: Outcome): void {
    const name = `${kind} ${'closed' in outcome ? 'closed' : outcome.status}`
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
    if (isForbidden(kind, outcome)) this.forbidden.set(name, JSON.stringify(outcome).slice(0, 500))
  }

  /** Adds an answer of a polite tenant that broke off. */
  addBroken(text: string): void {
    this.forbidden.set('polite, broken stream', text.slice(-500))
  }

  /** Starts the time to the first token of a polite call. Only the first call of `arrived` counts. */
  waitForToken(): { arrived(): void } {
    const start = performance.now()
    let hasArrived = false
    return {
      arrived: () => {
        if (!hasArrived) this.firstTokensMs.push(performance.now() - start)
        hasArrived = true
      },
    }
  }
}

/** A polite tenant always gets an answer. The others may get a 503 of the API, with `retry-after`, but no other 5xx. */
function isForbidden(kind: string, outcome: Outcome): boolean {
  if ('closed' in outcome) return kind === 'polite'
  if (outcome.status < 500) return kind === 'polite' && outcome.status !== 200
  return outcome.status !== 503 || !outcome.retryAfter || !outcome.body.includes('"error"')
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
