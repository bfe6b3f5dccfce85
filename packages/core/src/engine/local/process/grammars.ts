/** Schemas come from anywhere: grammars are made of them in a worker, with a deadline and a cap. */
import { invalidRequest } from '../../../errors.ts'
import type { AnswerForm } from '../../../grammar/answer.ts'
import { fromWire, type WireError } from '../protocol.ts'
import { BoundedWorker } from './bounded-worker.ts'

const deadlineMs = 2_000
const memoryMb = 256

export type GrammarResult = { readonly source: string | undefined } | { readonly error: WireError }

/** One grammar at a time; the others wait. */
export class Grammars {
  readonly #worker = new BoundedWorker<AnswerForm, GrammarResult>(
    new URL('./grammar-worker.js', import.meta.url),
    {
      deadlineMs,
      memoryMb,
      tooMuch: (what) =>
        invalidRequest(`It takes too much ${what} to make a grammar of this. Ask for something simpler.`, {
          issue: 'value',
        }),
    },
  )

  /** GBNF; nothing where any text will do, or for callers who have left. Throws `invalid_request`. */
  async make(form: AnswerForm, signal: AbortSignal): Promise<string | undefined> {
    const result = await this.#worker.run(form, signal)
    if (!result) return undefined
    if ('error' in result) throw fromWire(result.error)
    return result.source
  }
}
