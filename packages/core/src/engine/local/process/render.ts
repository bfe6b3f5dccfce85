/** Chat templates come with model files from anywhere: they run in a worker, with a deadline and a cap. */
import { Worker } from 'node:worker_threads'
import { invalidRequest, LlmError } from '../../../errors.ts'
import type { ChatTemplate, RenderOptions } from '../../../template/jinja.ts'
import type { Message } from '../../request.ts'

const deadlineMs = 10_000
const memoryMb = 512

export interface RenderJob {
  readonly template: ChatTemplate
  readonly messages: readonly Message[]
  readonly options: RenderOptions
}
export type RenderResult = { readonly text: string } | { readonly error: string }

/** One prompt at a time; the others wait. */
export class PromptRenderer {
  #worker: Worker | undefined = start()
  #queue: Promise<unknown> = Promise.resolve()

  render(template: ChatTemplate, messages: readonly Message[], options: RenderOptions): Promise<string> {
    const rendering = this.#queue.then(() => this.#render({ template, messages, options }))
    this.#queue = rendering.catch(() => {})
    return rendering
  }

  async #render(job: RenderJob): Promise<string> {
    this.#worker ??= start()
    const worker = this.#worker
    const result = await new Promise<RenderResult>((resolve, reject) => {
      const give = (error: LlmError): void => {
        this.#worker = undefined
        void worker.terminate()
        reject(error)
      }
      const timer = setTimeout(() => give(tooMuch('time')), deadlineMs)
      worker.removeAllListeners()
      worker.once('error', () => give(tooMuch('memory')))
      worker.once('message', resolve)
      worker.once('message', () => clearTimeout(timer))
      worker.once('error', () => clearTimeout(timer))
      worker.postMessage(job)
    })
    if ('error' in result)
      throw invalidRequest(`The model's chat template refuses these messages: ${result.error}`, {
        param: 'messages',
      })
    return result.text
  }
}

const tooMuch = (what: string): LlmError =>
  new LlmError('invalid_request', `The model's chat template takes too much ${what} for these messages.`, {
    param: 'messages',
  })

function start(): Worker {
  const worker = new Worker(new URL('./render-worker.js', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: memoryMb },
  })
  worker.unref()
  return worker
}
