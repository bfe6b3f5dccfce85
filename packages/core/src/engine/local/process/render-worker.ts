/** The worker thread in which templates run. */
import { parentPort } from 'node:worker_threads'
import { type ChatPrompt, parseChat } from '../../../template/jinja.ts'
import type { RenderJob, RenderResult } from './render.ts'

/** A loop in a template must not fill the memory of its reader. */
const maxLength = 64 * 1024 * 1024

/** The words of a template end up in an answer. */
const maxErrorLength = 500

/** The last one: a model process has one template. */
let parsed: { readonly source: string; readonly prompt: ChatPrompt } | undefined

parentPort?.on('message', (job: RenderJob) => {
  parentPort?.postMessage(render(job))
})

function render({ template, messages, options }: RenderJob): RenderResult {
  try {
    if (parsed?.source !== template.source) parsed = { source: template.source, prompt: parseChat(template) }
    // Variables and the schemas of tools are as they came: half a character in them is none in UTF-8.
    const text = parsed.prompt(messages, options).toWellFormed()
    return text.length > maxLength ? { error: 'the prompt is too long' } : { text }
  } catch (cause) {
    return { error: (cause instanceof Error ? cause.message : String(cause)).slice(0, maxErrorLength) }
  }
}
