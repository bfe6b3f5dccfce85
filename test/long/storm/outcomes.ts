/** Outcomes of the calls of a storm, and how long polite tenants waited for their first token. */

/**
 * A response, the reason why a connection ended without one, or what a hostile tenant has done with a call that
 * got no error.
 */
export type Outcome =
  | { readonly status: number; readonly retryAfter: boolean; readonly body: string }
  | { readonly closed: string }
  | { readonly did: string }

export class Outcomes {
  /** Time to the first token of each call of a polite tenant, in milliseconds. */
  readonly firstTokensMs: number[] = []
  /** Number of outcomes by kind of tenant, then by name of the outcome. */
  readonly counts = new Map<string, Map<string, number>>()
  /** Outcomes that no client may get, at most one of each kind. */
  readonly forbidden = new Map<string, string>()

  add(kind: string, outcome: Outcome): void {
    const name = nameOf(outcome)
    const counts = this.counts.get(kind) ?? new Map<string, number>()
    this.counts.set(kind, counts.set(name, (counts.get(name) ?? 0) + 1))
    if (isForbidden(kind, outcome))
      this.forbidden.set(`${kind}, ${name}`, JSON.stringify(outcome).slice(0, 500))
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

const nameOf = (outcome: Outcome): string =>
  'did' in outcome ? outcome.did : 'closed' in outcome ? 'closed' : String(outcome.status)

/** A polite tenant always gets an answer. The others may get a 503 of the API, with `retry-after`, but no other 5xx. */
function isForbidden(kind: string, outcome: Outcome): boolean {
  if ('closed' in outcome) return kind === 'polite'
  if ('did' in outcome) return false
  if (outcome.status < 500) return kind === 'polite' && outcome.status !== 200
  return outcome.status !== 503 || !outcome.retryAfter || !outcome.body.includes('"error"')
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
