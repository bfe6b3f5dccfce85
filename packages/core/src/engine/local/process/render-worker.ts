/** The worker thread in which templates run. */
import { parentPort } from 'node:worker_threads'
import { type ChatPrompt, fillings, parseChat } from '../../../template/jinja.ts'
import { maxLength, type RenderJob, type RenderResult } from './render.ts'

/** The words of a template end up in an answer. */
const maxErrorLength = 500

/** The last one: a model process has one template. */
let parsed: { readonly source: string; readonly prompt: ChatPrompt } | undefined

parentPort?.on('message', (job: RenderJob) => {
  parentPort?.postMessage(render(job))
})

function render({ template, messages, options }: RenderJob): RenderResult {
  const startedAt = performance.now()
  const refusal = (error: string) => ({ error, spentMs: performance.now() - startedAt })
  try {
    if (parsed?.source !== template.source) parsed = { source: template.source, prompt: parseChat(template) }
    const text = parsed.prompt(messages, options)
    return text.length > maxLength ? refusal('the prompt is too long') : { text }
  } catch (cause) {
    const refused = refusal((cause instanceof Error ? cause.message : String(cause)).slice(0, maxErrorLength))
    // What goes too deep here does so there.
    return cause instanceof RangeError
      ? refused
      : { ...refused, filling: fillings(template)(messages, options) }
  }
}
