/** Rejects client grammars that were in use when a model process crashed or hung. */
import { createHash } from 'node:crypto'
import type { LRUCache } from 'lru-cache'
import { invalidRequest } from '../../../errors.ts'
import type { GenerateRequest } from '../../request.ts'

/** How long a grammar is rejected. The rejection ends, since another call may have caused the crash. */
const quarantineMs = 10 * 60_000
const maxEntries = 1_000

type ConstrainedRequest = Pick<GenerateRequest, 'format'>

export class GrammarQuarantine {
  readonly #now: () => number
  /**
   * Time of quarantine by grammar hash, in milliseconds. The `ttl` of lru-cache would treat a time of 0 as
   * unset.
   */
  #quarantinedAt: LRUCache<string, number> | undefined

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Throws an `LlmError` `invalid_request` if the grammar is quarantined. */
  check(request: ConstrainedRequest): void {
    const at = this.#quarantinedAt?.peek(hashGrammar(request) ?? '')
    if (at === undefined || this.#now() - at >= quarantineMs) return
    throw invalidRequest(
      'A model process crashed or hung while it used this grammar. It is rejected for 10 minutes.',
      { param: 'format.source', issue: 'value' },
    )
  }

  async add(request: ConstrainedRequest): Promise<void> {
    const hash = hashGrammar(request)
    if (hash === undefined) return
    const at = this.#now()
    // Imported on the first crash, so that the app starts faster.
    const { LRUCache } = await import('lru-cache')
    this.#quarantinedAt ??= new LRUCache({ max: maxEntries })
    this.#quarantinedAt.set(hash, at)
  }
}

const hashGrammar = ({ format }: ConstrainedRequest): string | undefined =>
  format?.type === 'grammar' ? createHash('sha256').update(format.source).digest('base64') : undefined
