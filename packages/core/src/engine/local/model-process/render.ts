/** Chat templates come with model files from anywhere: they run in workers, with a deadline and a cap. */
import { invalidRequest } from '../../../errors.ts'
import { toPrompt } from '../../../template/continuation.ts'
import type { InfillContext } from '../../../template/go-prompt.ts'
import type { ChatTemplate, RenderOptions, TemplateInput } from '../../../template/jinja.ts'
import type { Message } from '../../request.ts'
import { BoundedWorker, startProcess } from './bounded-worker.ts'

const bounds = {
  deadlineMs: 10_000,
  limitError: (what: 'time' | 'memory') =>
    invalidRequest(`The model's chat template takes too much ${what} for these messages.`, {
      param: 'messages',
    }),
}
const crashError = () =>
  invalidRequest("The model's chat template crashes the native code that fills it, with these messages.", {
    param: 'messages',
  })
/** A loop in a template must not fill the memory of its reader. In characters. */
export const maxPromptLength = 64 * 1024 * 1024

export interface RenderJob {
  readonly template: ChatTemplate
  /** In Go's language, in place of that one. */
  readonly goTemplate?: string
  readonly messages: readonly Message[]
  readonly options: RenderOptions
  /** In place of messages, for a template in Go's language. */
  readonly gap?: InfillContext
}
export type RenderResult =
  | { readonly text: string }
  /** `filling`: for native code, which knows more of the language and has what is left of the time. */
  | { readonly error: string; readonly filling?: TemplateInput; readonly spentMs: number }

export interface NativeJob {
  readonly source: string
  readonly variables: TemplateInput['variables']
}
/** Nothing where it refuses. */
export interface NativeResult {
  readonly text?: string
}

/** One prompt at a time; the others wait. Callers who have left get an empty one. */
export class PromptRenderer {
  readonly #worker = new BoundedWorker<RenderJob, RenderResult>(
    new URL('./render-worker.js', import.meta.url),
    { ...bounds, memoryMb: 512 },
  )
  readonly #native = new BoundedWorker<NativeJob, NativeResult>(
    new URL('./native-process.js', import.meta.url),
    { ...bounds, memoryMb: 1_024, idleMs: 60_000, crashError },
    startProcess,
  )

  constructor() {
    this.#worker.start()
  }

  async render(job: RenderJob, signal: AbortSignal): Promise<string> {
    const result = (await this.#worker.run(job, signal)) ?? { text: '' }
    if ('text' in result) return result.text
    const { error, filling, spentMs } = result
    if (filling) {
      const native = { source: job.template.source, variables: filling.variables }
      const { text } = (await this.#native.run(native, signal, spentMs)) ?? { text: '' }
      if (text !== undefined) return toPrompt(text, filling)
    }
    // Where both refuse, what was said first is said of both.
    throw invalidRequest(`The model's chat template refuses these messages: ${error}`, { param: 'messages' })
  }
}
