/** Worker thread that renders templates. */
import { type GoPromptRenderer, parseGoPrompt } from '../../../template/go-prompt.ts'
import { type ChatRenderer, createTemplateInputBuilder, parseChatTemplate } from '../../../template/jinja.ts'
import { maxPromptLength, type RenderJob, type RenderResult } from './render-job.ts'
import { serveJobs } from './workers/serve-jobs.ts'

/** Longest error message in characters. A template can raise a longer one, and clients receive it. */
const maxErrorLength = 500

/** The last template of each language, parsed. Most calls use the same template. */
let parsed: { readonly source: string; readonly prompt: ChatRenderer } | undefined
let parsedGo: { readonly source: string; readonly prompt: GoPromptRenderer } | undefined

serveJobs((job: RenderJob) => (job.goTemplate === undefined ? render(job) : renderGo(job, job.goTemplate)))

function render({ template, messages, options }: RenderJob): RenderResult {
  try {
    if (parsed?.source !== template.source)
      parsed = { source: template.source, prompt: parseChatTemplate(template) }
    return checkLength(parsed.prompt(messages, options))
  } catch (cause) {
    // No second attempt: llama.cpp's renderer would exceed the same limits.
    return cause instanceof RangeError || cause instanceof PromptTooLongError
      ? toFailure(cause)
      : { ...toFailure(cause), filling: createTemplateInputBuilder(template)(messages, options) }
  }
}

function renderGo({ template, messages, options, gap }: RenderJob, source: string): RenderResult {
  try {
    if (parsedGo?.source !== source) parsedGo = { source, prompt: parseGoPrompt(source, template) }
    return checkLength(
      gap ? parsedGo.prompt.renderInfill(gap) : parsedGo.prompt.renderChat(messages, options),
    )
  } catch (cause) {
    return toFailure(cause)
  }
}

class PromptTooLongError extends Error {}

function checkLength(text: string): RenderResult {
  if (text.length > maxPromptLength) throw new PromptTooLongError('the prompt is too long')
  return { text }
}

const toFailure = (cause: unknown): { readonly error: string } => ({
  error: (cause instanceof Error ? cause.message : String(cause)).slice(0, maxErrorLength),
})
