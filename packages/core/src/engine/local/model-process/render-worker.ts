/** The worker thread in which templates run. */
import { parentPort } from 'node:worker_threads'
import { type GoPrompt, parseGoPrompt } from '../../../template/go-prompt.ts'
import { type ChatPrompt, fillings, parseChat } from '../../../template/jinja.ts'
import { maxLength, type RenderJob, type RenderResult } from './render.ts'

/** The words of a template end up in an answer. */
const maxErrorLength = 500

/** The last one of each language: most calls bring the same. */
let parsed: { readonly source: string; readonly prompt: ChatPrompt } | undefined
let parsedGo: { readonly source: string; readonly prompt: GoPrompt } | undefined

parentPort?.on('message', (job: RenderJob) => {
  parentPort?.postMessage(job.goTemplate === undefined ? render(job) : renderGo(job, job.goTemplate))
})

function render({ template, messages, options }: RenderJob): RenderResult {
  const startedAt = performance.now()
  const refusal = (cause: unknown) => ({ ...refused(cause), spentMs: performance.now() - startedAt })
  try {
    if (parsed?.source !== template.source) parsed = { source: template.source, prompt: parseChat(template) }
    return bounded(parsed.prompt(messages, options))
  } catch (cause) {
    // What goes too deep here does so there.
    return cause instanceof RangeError || cause instanceof TooLong
      ? refusal(cause)
      : { ...refusal(cause), filling: fillings(template)(messages, options) }
  }
}

function renderGo({ template, messages, options, gap }: RenderJob, source: string): RenderResult {
  try {
    if (parsedGo?.source !== source) parsedGo = { source, prompt: parseGoPrompt(source, template) }
    return bounded(gap ? parsedGo.prompt.fill(gap) : parsedGo.prompt.chat(messages, options))
  } catch (cause) {
    return refused(cause)
  }
}

class TooLong extends Error {}

function bounded(text: string): RenderResult {
  if (text.length > maxLength) throw new TooLong('the prompt is too long')
  return { text }
}

const refused = (cause: unknown): { readonly error: string; readonly spentMs: number } => ({
  error: (cause instanceof Error ? cause.message : String(cause)).slice(0, maxErrorLength),
  spentMs: 0,
})
