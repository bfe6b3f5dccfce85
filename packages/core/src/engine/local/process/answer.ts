/** One answer: prompt text, tokens, prefill, then token after token until something ends it. */
import type { Token } from 'node-llama-cpp'
import { StopMatcher } from '../../../template/stop.ts'
import type { FinishReason, GenerateEvent } from '../../events.ts'
import type { GenerateRequest } from '../../request.ts'
import type { Binding, Progress } from './binding.ts'
import { Detokenizer } from './detokenize.ts'
import type { PromptRenderer } from './render.ts'
import { toEvaluateOptions } from './sampling.ts'

export interface Work {
  readonly model: Binding
  readonly renderer: PromptRenderer
  readonly progress: Progress
  readonly signal: AbortSignal
}

/** Returns quietly, without an `end`, when the signal aborts. */
export async function answer(
  request: GenerateRequest,
  { model, renderer, progress, signal }: Work,
  emit: (event: GenerateEvent) => void,
): Promise<void> {
  const text = await renderer.render(model.template, request.input.messages)
  const prompt = await model.tokenize(text)
  if (signal.aborted) return
  emit({
    type: 'start',
    model: request.model,
    inputTokens: prompt.length,
    reusedTokens: 0,
    fingerprint: model.fingerprint,
  })

  const startedAt = performance.now()
  let firstAt = 0
  const room = model.contextSize - prompt.length
  const limit = Math.min(request.maxTokens ?? Number.POSITIVE_INFINITY, room)
  const detokenizer = new Detokenizer(model, prompt)
  const stops = new StopMatcher(request.stop)
  const drawn: Token[] = []
  let reason: FinishReason = 'stop'
  let stopSequence: string | undefined
  let reported = 0

  const say = (text: string): void => {
    if (text === '') return
    emit({ type: 'text', text, tokens: drawn.length - reported })
    reported = drawn.length
  }
  const onPiece = (): boolean => {
    progress.steps++
    return !signal.aborted
  }

  for await (const token of model.generate(
    prompt,
    toEvaluateOptions(model, request.sampling, prompt, drawn),
    onPiece,
  )) {
    if (!onPiece()) return
    firstAt ||= performance.now()
    drawn.push(token)
    const { text, stop } = stops.push(detokenizer.push(token))
    say(text)
    if (stop !== undefined) {
      stopSequence = stop
      break
    }
    if (drawn.length >= limit) {
      reason = drawn.length === request.maxTokens ? 'length' : 'context'
      break
    }
  }
  if (signal.aborted) return
  if (stopSequence === undefined) {
    const { text, stop } = stops.push(detokenizer.flush())
    stopSequence = stop
    say(stop === undefined ? text + stops.flush() : text)
    if (stop !== undefined) reason = 'stop'
  }

  const endedAt = performance.now()
  emit({
    type: 'end',
    reason,
    ...(stopSequence !== undefined && { stopSequence }),
    usage: { inputTokens: prompt.length, reusedTokens: 0, outputTokens: drawn.length },
    timings: {
      loadMs: 0,
      promptMs: (firstAt || endedAt) - startedAt,
      generateMs: firstAt ? endedAt - firstAt : 0,
    },
  })
}
