/** A health indicator for `@nestjs/terminus`, which this package does not need itself. */
import type { Llm } from '@modelmount/core'
import type { HealthOptions } from '@modelmount/core/operations'
import { Inject, Injectable } from '@nestjs/common'
import { LLM } from './llm.tokens.ts'

/** What terminus expects of an indicator. */
export type LlmHealthResult<Key extends string> = Record<
  Key,
  | { readonly status: 'up' }
  /** `failed` has the names of the failed checks. `llm.checkHealth()` has their reasons. */
  | { readonly status: 'down'; readonly failed: readonly string[] }
>

/** `LlmModule` provides and exports it. */
@Injectable()
export class LlmHealthIndicator {
  readonly #llm: Llm

  constructor(@Inject(LLM) llm: Llm) {
    this.#llm = llm
  }

  /**
   * Resolves with the status `up` if the app can answer calls of models now. The result contains no reasons, because
   * terminus shows it to every client.
   */
  async isHealthy<const Key extends string>(
    key: Key,
    options?: HealthOptions,
  ): Promise<LlmHealthResult<Key>> {
    const { status, checks } = await this.#llm.checkHealth(options)
    const failed = Object.keys(checks).filter((name) => checks[name]?.status !== 'ok')
    const result = status === 'ok' ? { status: 'up' } : { status: 'down', failed }
    return { [key]: result } as LlmHealthResult<Key>
  }
}
