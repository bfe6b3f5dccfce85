/** Chat templates come with model files from anywhere: they run in a worker, with a deadline and a cap. */
import { Worker } from 'node:worker_threads'
import { invalidRequest, LlmError } from '../../../errors.ts'
import type { ChatTemplate, RenderOptions } from '../../../template/jinja.ts'
import type { Message } from '../../request.ts'

const deadlineMs = 10_000
/** Nobody waits for it any more; most are through by then, and a new worker costs more. */
const leftDeadlineMs = 500
const memoryMb = 512

export interface RenderJob {
  readonly template: ChatTemplate
  readonly messages: readonly Message[]
  readonly options: RenderOptions
}
export type RenderResult = { readonly text: string } | { readonly error: string }

/** One prompt at a time; the others wait. Callers who have left get an empty one. */
export class PromptRenderer {
  #worker: Worker | undefined = start()
  #queue: Promise<unknown> = Promise.resolve()

  render(job: RenderJob, signal: AbortSignal): Promise<string> {
    const rendering = this.#queue.then(() => (signal.aborted ? '' : this.#render(job, signal)))
    this.#queue = rendering.catch(() => {})
    return rendering
  }

  async #render(job: RenderJob, signal: AbortSignal): Promise<string> {
    this.#worker ??= start()
    const worker = this.#worker
    let timer: NodeJS.Timeout | undefined
    let hurry = (): void => {}
    const result = await new Promise<RenderResult>((resolve, reject) => {
      const fail = (error: LlmError): void => {
        this.#worker = undefined
        void worker.terminate()
        reject(error)
      }
      const endIn = (ms: number): NodeJS.Timeout => setTimeout(() => fail(tooMuch('time')), ms)
      timer = endIn(deadlineMs)
      hurry = () => {
        clearTimeout(timer)
        timer = endIn(leftDeadlineMs)
      }
      signal.addEventListener('abort', hurry)
      worker.removeAllListeners()
      worker.once('error', () => fail(tooMuch('memory')))
      worker.once('message', resolve)
      worker.postMessage(job)
    }).finally(() => {
      clearTimeout(timer)
      signal.removeEventListener('abort', hurry)
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
