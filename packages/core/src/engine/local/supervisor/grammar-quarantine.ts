/** Grammars of users that were at work when a model process crashed or hung. */
import { createHash } from 'node:crypto'
import { invalidRequest } from '../../../errors.ts'
import type { GenerateRequest } from '../../request.ts'

/** So long one is refused. It may have been another's fault. */
const banMs = 10 * 60_000
/** The oldest is forgotten first. */
const most = 1_000

type Asked = Pick<GenerateRequest, 'format'>

export class Suspects {
  readonly #now: () => number
  /** When, by hash. */
  readonly #seen = new Map<string, number>()

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Throws `invalid_request`. */
  check(request: Asked): void {
    const at = this.#seen.get(hashOf(request) ?? '')
    if (at !== undefined && this.#now() - at < banMs)
      throw invalidRequest(
        'A model process has ended while it worked with this grammar: it is refused for now.',
        {
          param: 'format.source',
          issue: 'value',
        },
      )
  }

  note(request: Asked): void {
    const hash = hashOf(request)
    if (hash === undefined) return
    this.#seen.delete(hash)
    this.#seen.set(hash, this.#now())
    for (const [oldest] of this.#seen) if (this.#seen.size > most) this.#seen.delete(oldest)
  }
}

const hashOf = ({ format }: Asked): string | undefined =>
  format?.type === 'grammar' ? createHash('sha256').update(format.source).digest('base64') : undefined
