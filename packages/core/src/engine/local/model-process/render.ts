/** Renders chat templates in workers with a deadline and a memory limit, since model files are untrusted. */
import { invalidRequest } from '../../../errors.ts'
import { toPrompt } from '../../../template/continuation.ts'
import { BoundedWorker, startProcess } from './bounded-worker.ts'
import type { NativeJob, NativeResult, RenderJob, RenderResult } from './render-job.ts'

const bounds = {
  deadlineMs: 10_000,
  limitError: (what: 'time' | 'memory') =>
    invalidRequest(`The model's chat template takes too much ${what} for these messages.`, {
      param: 'messages',
    }),
}
const crashError = () =>
  invalidRequest("The model's chat template crashes llama.cpp's renderer with these messages.", {
    param: 'messages',
  })
/** Renders one prompt at a time. Returns an empty prompt when the signal aborts before rendering starts. */
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
    // If both renderers fail, the error of the first renderer is reported.
    throw invalidRequest(`The model's chat template rejects these messages: ${error}`, { param: 'messages' })
  }
}
