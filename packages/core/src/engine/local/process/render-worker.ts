/** The worker thread in which templates run. */
import { parentPort } from 'node:worker_threads'
import { renderChat } from '../../../template/jinja.ts'
import type { RenderJob, RenderResult } from './render.ts'

/** A loop in a template must not fill the memory of its reader. */
const maxLength = 64 * 1024 * 1024

/** The words of a template end up in an answer. */
const maxErrorLength = 500

parentPort?.on('message', (job: RenderJob) => {
  parentPort?.postMessage(render(job))
})

function render({ template, messages, reasoning }: RenderJob): RenderResult {
  try {
    const text = renderChat(template, messages, reasoning)
    return text.length > maxLength ? { error: 'the prompt is too long' } : { text }
  } catch (cause) {
    return { error: (cause instanceof Error ? cause.message : String(cause)).slice(0, maxErrorLength) }
  }
}
