/** Token counts of the Anthropic API. Shape: Anthropic API reference, "Create a Message", `usage`. */
import { isRecord } from '../../../util/is-record.ts'
import { readCount, readRecord } from '../response-fields.ts'
import type { ReportedUsage } from '../upstream-api.ts'

/** Joins the counts of the events of one answer. A later count replaces an earlier one. */
export class MessageUsage {
  readonly #counts: Record<string, unknown> = {}

  add(usage: unknown): void {
    if (usage === undefined || usage === null) return
    for (const [name, value] of Object.entries(readRecord(usage, '`usage`')))
      if (value !== null) this.#counts[name] = value
  }

  /** `input_tokens` counts neither what the server has read from its cache nor what it has written there. */
  toReported(): ReportedUsage {
    const input = this.#count('input_tokens')
    const cachedTokens = this.#count('cache_read_input_tokens')
    const written = this.#count('cache_creation_input_tokens')
    return {
      inputTokens: input === undefined ? undefined : input + (cachedTokens ?? 0) + (written ?? 0),
      cachedTokens,
      cacheWriteTokens: written === undefined ? undefined : this.#splitByLifetime(written),
      outputTokens: this.#count('output_tokens'),
    }
  }

  #splitByLifetime(written: number): ReportedUsage['cacheWriteTokens'] {
    const { cache_creation: split } = this.#counts
    const name = 'ephemeral_1h_input_tokens'
    const hour = Math.min(written, (isRecord(split) && readCount(split[name], `\`${name}\``)) || 0)
    return { '5m': written - hour, '1h': hour }
  }

  #count(name: string): number | undefined {
    return readCount(this.#counts[name], `\`${name}\``)
  }
}
