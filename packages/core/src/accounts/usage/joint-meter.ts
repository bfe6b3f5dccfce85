/** Several answers that are one call: let in together, counted together, and charged together when all have ended or one has not. */
import type { TokenUsage } from '../../engine/events.ts'
import type { CallStatus, WorstCase } from './ledger.ts'
import type { CallMeter, Meter } from './meter.ts'

export class JointMeter {
  readonly #meter: Meter
  readonly #count: number
  /** By part, up to now. */
  readonly #usages: (TokenUsage | undefined)[] = []
  #begun = 0
  #ended = 0
  #admitted: Promise<number | undefined> | undefined

  /** @param signal aborts where its caller has left, also between two parts */
  constructor(meter: Meter, count: number, signal: AbortSignal) {
    this.#meter = meter
    this.#count = count
    const leave = (): void => void this.#settle('aborted')
    signal.addEventListener('abort', leave, { once: true })
    if (signal.aborted) leave()
  }

  /** Of the next answer. */
  part(): CallMeter {
    const index = this.#begun++
    const meter = this.#meter
    let isOver = false
    return {
      limits: meter.limits,
      isCounted: meter.isCounted,
      get isOpen() {
        return meter.isOpen
      },
      admit: (signal, most, maxTokens) => this.#admit(signal, most, maxTokens),
      onProgress: (usage) => {
        this.#usages[index] = usage
        meter.onProgress(this.#usage ?? usage)
      },
      settle: async (usage, status) => {
        if (isOver) return
        isOver = true
        if (usage) this.#usages[index] = usage
        if (status !== 'ended' || ++this.#ended === this.#count) await this.#settle(status)
      },
    }
  }

  /** The first waits for all. Where nobody says how long an answer may be, each gets the same. */
  async #admit(signal: AbortSignal, most: () => Promise<WorstCase>, maxTokens?: number) {
    this.#admitted ??= this.#meter.admit(signal, most)
    const all = await this.#admitted
    return all === undefined ? undefined : (maxTokens ?? Math.floor(all / this.#count))
  }

  #settle(status: CallStatus): Promise<void> {
    return this.#meter.settle(this.#usage, status)
  }

  get #usage(): TokenUsage | undefined {
    return this.#usages.reduce((sum, usage) => (sum && usage ? added(sum, usage) : (sum ?? usage)), undefined)
  }
}

const added = (a: TokenUsage, b: TokenUsage): TokenUsage => ({
  inputTokens: a.inputTokens + b.inputTokens,
  reusedTokens: a.reusedTokens + b.reusedTokens,
  cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
  cacheWriteTokens: {
    '5m': a.cacheWriteTokens['5m'] + b.cacheWriteTokens['5m'],
    '1h': a.cacheWriteTokens['1h'] + b.cacheWriteTokens['1h'],
  },
  outputTokens: a.outputTokens + b.outputTokens,
})
