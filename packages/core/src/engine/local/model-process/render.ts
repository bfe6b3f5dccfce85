/** Renders chat templates in workers with limits of CPU time and memory, since model files are untrusted. */
import { invalidRequest } from '../../../errors.ts'
import { toPrompt } from '../../../template/continuation.ts'
import type { StepCounter } from './model.ts'
import type { NativeJob, NativeResult, RenderJob, RenderResult } from './render-job.ts'
import { BoundedWorker, startProcess } from './workers/bounded-worker.ts'
import { type CpuBudget, callBudgetMs } from './workers/cpu-budget.ts'
import type { CpuMeter } from './workers/cpu-meter.ts'
import { type PoolWorker, WorkerPool } from './workers/worker-pool.ts'

const bounds = {
  limitError: (what: 'time' | 'memory') =>
    invalidRequest(
      `The model's chat template takes too much ${what} for these messages. The limit is ${limits[what]} for each call.`,
      { param: 'messages' },
    ),
}
const limits = { time: `${callBudgetMs / 1_000} s of CPU time`, memory: '512 MB' }
const crashError = () =>
  invalidRequest("The model's chat template crashes llama.cpp's renderer with these messages.", {
    param: 'messages',
  })
/** How long idle workers are kept, in ms. The first thread is kept until this process ends. */
const idleMs = 60_000

/** Renders the prompts of all tenants in turn. */
export class PromptRenderer {
  readonly #pool: WorkerPool<RenderJob, string>

  /** @param progress counts rendered prompts */
  constructor(progress: StepCounter) {
    const first = new RenderWorker(true)
    this.#pool = new WorkerPool((isFirst) => (isFirst ? first : new RenderWorker(false)), {
      onProgress: () => {
        progress.steps++
      },
    })
  }

  /** Returns an empty prompt when the signal of the budget aborts before rendering starts. */
  async render(job: RenderJob, budget: CpuBudget): Promise<string> {
    return (await this.#pool.run(job, budget)) ?? ''
  }
}

/** A worker thread, and a child process for templates that only llama.cpp can render. */
class RenderWorker implements PoolWorker<RenderJob, string> {
  readonly #thread: BoundedWorker<RenderJob, RenderResult>
  readonly #native = new BoundedWorker<NativeJob, NativeResult>(
    new URL('./native-process.js', import.meta.url),
    { ...bounds, memoryMb: 1_024, idleMs, crashError },
    startProcess,
  )

  /** @param isPermanent whether the thread starts at once and is kept when it is idle */
  constructor(isPermanent: boolean) {
    this.#thread = new BoundedWorker(new URL('./render-worker.js', import.meta.url), {
      ...bounds,
      memoryMb: 512,
      ...(!isPermanent && { idleMs }),
    })
    if (isPermanent) this.#thread.start()
  }

  async run(job: RenderJob, signal: AbortSignal, meter: CpuMeter): Promise<string | undefined> {
    const result = await this.#thread.run(job, signal, meter)
    if (!result) return undefined
    if ('text' in result) return result.text
    const { error, filling } = result
    if (filling) {
      const native = { source: job.template.source, variables: filling.variables }
      const rendered = await this.#native.run(native, signal, meter)
      if (!rendered) return undefined
      if (rendered.text !== undefined) return toPrompt(rendered.text, filling)
    }
    // If both renderers fail, the error of the first renderer is reported.
    throw invalidRequest(`The model's chat template rejects these messages: ${error}`, { param: 'messages' })
  }

  restart(): void {
    this.#thread.restart()
    this.#native.restart()
  }
}
