/** Chat templates come with model files from anywhere: they run in a worker, with a deadline and a cap. */
import { invalidRequest, LlmError } from '../../../errors.ts'
import { type ChatTemplate, type Filling, type RenderOptions, toPrompt } from '../../../template/jinja.ts'
import type { Message } from '../../request.ts'
import { BoundedWorker } from './bounded-worker.ts'
import type { NativeTemplate } from './native-template.ts'

const deadlineMs = 10_000
const memoryMb = 512
/** A loop in a template must not fill the memory of its reader. In characters. */
export const maxLength = 64 * 1024 * 1024

export interface RenderJob {
  readonly template: ChatTemplate
  readonly messages: readonly Message[]
  readonly options: RenderOptions
}
export type RenderResult =
  | { readonly text: string }
  /** `filling`: for native code, which knows more of the language. */
  | { readonly error: string; readonly filling?: Filling }

/** One prompt at a time; the others wait. Callers who have left get an empty one. */
export class PromptRenderer {
  readonly #worker = new BoundedWorker<RenderJob, RenderResult>(
    new URL('./render-worker.js', import.meta.url),
    {
      deadlineMs,
      memoryMb,
      tooMuch: (what) =>
        invalidRequest(`The model's chat template takes too much ${what} for these messages.`, {
          param: 'messages',
        }),
    },
  )

  constructor() {
    this.#worker.start()
  }

  /** @param native fills templates that cannot be read here; absent where there is no such code */
  async render(job: RenderJob, signal: AbortSignal, native?: NativeTemplate): Promise<string> {
    const result = (await this.#worker.run(job, signal)) ?? { text: '' }
    if ('text' in result) return result.text
    const text = result.filling && native && filled(native, result.filling)
    if (text !== undefined && text.length <= maxLength) return text
    throw invalidRequest(`The model's chat template refuses these messages: ${result.error}`, {
      param: 'messages',
    })
  }
}

/** Nothing where it refuses, too: what was said first is said of both. */
function filled(native: NativeTemplate, filling: Filling): string | undefined {
  try {
    return toPrompt(native.fill(filling.variables), filling)
  } catch (cause) {
    if (cause instanceof LlmError) throw cause
    return undefined
  }
}
