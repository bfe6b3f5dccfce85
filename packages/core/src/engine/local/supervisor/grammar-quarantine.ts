/** Grammars of users that were at work when a model process crashed or hung. */
import { createHash } from 'node:crypto'
import { invalidRequest } from '../../../errors.ts'
import type { GenerateRequest } from '../../request.ts'

/** So long one is refused. It may have been another's fault. */
const quarantineMs = 10 * 60_000
/** The oldest is forgotten first. */
const maxEntries = 1_000

type ConstrainedRequest = Pick<GenerateRequest, 'format'>

export class GrammarQuarantine {
  readonly #now: () => number
  /** When, by hash. */
  readonly #quarantinedAt = new Map<string, number>()

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Throws `invalid_request`. */
  check(request: ConstrainedRequest): void {
    const at = this.#quarantinedAt.get(hashGrammar(request) ?? '')
    if (at !== undefined && this.#now() - at < quarantineMs)
      throw invalidRequest(
        'A model process has ended while it worked with this grammar: it is refused for now.',
        {
          param: 'format.source',
          issue: 'value',
        },
      )
  }

  add(request: ConstrainedRequest): void {
    const hash = hashGrammar(request)
    if (hash === undefined) return
    this.#quarantinedAt.delete(hash)
    this.#quarantinedAt.set(hash, this.#now())
    for (const [oldest] of this.#quarantinedAt)
      if (this.#quarantinedAt.size > maxEntries) this.#quarantinedAt.delete(oldest)
  }
}

const hashGrammar = ({ format }: ConstrainedRequest): string | undefined =>
  format?.type === 'grammar' ? createHash('sha256').update(format.source).digest('base64') : undefined
