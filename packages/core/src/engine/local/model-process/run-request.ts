/** Runs one generation request: prepares the prompt, runs the model, and emits the output as events. */
import type { GenerateEvent } from '../../events.ts'
import type { GenerateRequest } from '../../request.ts'
import { OutputEmitter } from './decoding/output-emitter.ts'
import { createPromptTokenMapper } from './decoding/prompt-logprobs.ts'
import { toSamplingParams } from './decoding/sampling.ts'
import { type PreparedRun, prepareRun } from './prompt/prepare-run.ts'
import { countAddedTokens } from './prompt/prompt.ts'
import type { RunContext } from './run-context.ts'
import type { GenerationJob } from './runner.ts'

type EmitEvent = (event: GenerateEvent) => void

/** Emits no `end` when the signal aborts. */
export async function runRequest(
  request: GenerateRequest,
  context: RunContext,
  emit: EmitEvent,
): Promise<void> {
  const { model } = context
  const run = await prepareRun(request, context)
  const output = new OutputEmitter(run, model, emit)
  const job: GenerationJob = {
    ...toJob(run, context),
    onStart: (usage, divergence) => output.start(usage, divergence),
    onCacheChange: (usage) => output.updateCacheUsage(usage),
    onPromptLogprobs: toPromptEmitter(run, context, emit),
    onPrefill: request.returnProgress && ((evaluated) => output.updateProgress(evaluated)),
    onToken: (token, logprobs) => output.push(token, logprobs),
  }
  const endAnswer = context.budget.startAnswer()
  try {
    const outcome = await model.runner.run(job)
    if (outcome !== 'aborted') output.finish(outcome)
  } finally {
    endAnswer()
  }
}

function toJob(
  { request, prompt, breakpoints, maxTokens, grammar, isJson }: PreparedRun,
  { model, tenant, weight, background, signal, isBackpressured }: RunContext,
): Omit<GenerationJob, `on${string}`> {
  const { sampling = {}, logprobs } = request
  return {
    prompt,
    breakpoints,
    sampling: { ...toSamplingParams(sampling, model), isJson, ...(logprobs !== undefined && { logprobs }) },
    grammar,
    isDeterministic: typeof sampling.seed === 'number',
    maxTokens,
    tenant,
    weight,
    background,
    signal,
    isBackpressured,
  }
}

function toPromptEmitter(
  { request, prompt }: PreparedRun,
  { model }: RunContext,
  emit: EmitEvent,
): GenerationJob['onPromptLogprobs'] {
  if (!request.promptLogprobs) return undefined
  const toTokens = createPromptTokenMapper(prompt, countAddedTokens(request, prompt, model), model)
  return (logprobs) => emit({ type: 'prompt', tokens: toTokens(logprobs) })
}
