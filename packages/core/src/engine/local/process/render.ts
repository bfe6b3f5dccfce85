/** Chat templates come with model files from anywhere: they run in a worker, with a deadline and a cap. */
import { invalidRequest } from '../../../errors.ts'
import type { ChatTemplate, RenderOptions } from '../../../template/jinja.ts'
import type { Message } from '../../request.ts'
import { BoundedWorker } from './bounded-worker.ts'

const deadlineMs = 10_000
const memoryMb = 512

export interface RenderJob {
  readonly template: ChatTemplate
  readonly messages: readonly Message[]
  readonly options: RenderOptions
}
export type RenderResult = { readonly text: string } | { readonly error: string }

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

  async render(job: RenderJob, signal: AbortSignal): Promise<string> {
    const result = (await this.#worker.run(job, signal)) ?? { text: '' }
    if ('error' in result)
      throw invalidRequest(`The model's chat template refuses these messages: ${result.error}`, {
        param: 'messages',
      })
    return result.text
  }
}
