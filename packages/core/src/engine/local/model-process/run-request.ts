/** One answer: prompt text, tokens, prefill, then token after token until something ends it. */
import { randomBytes } from 'node:crypto'
import type { Token } from 'node-llama-cpp'
import { hasControlTokens, parseOutput } from '../../../template/output.ts'
import { answerForm } from '../../../template/output-constraint.ts'
import type { Said } from '../../../template/output-part.ts'
import { StopMatcher } from '../../../template/stop.ts'
import { type DrawnToken, type FinishReason, type GenerateEvent, uncached } from '../../events.ts'
import { callableTools, type GenerateRequest } from '../../request.ts'
import { Detokenizer } from './decoding/detokenize.ts'
import { SaidTokens } from './decoding/logprob-aligner.ts'
import { promptOdds } from './decoding/prompt-logprobs.ts'
import { toDraw } from './decoding/sampling.ts'
import { toDrawnToken } from './decoding/token-text.ts'
import type { Grammars } from './grammars.ts'
import type { Cached } from './kv-cache/cache-plan.ts'
import type { Binding, Progress } from './model.ts'
import { breakpointsOf } from './prompt/breakpoints.ts'
import { addedTokens, promptTokens } from './prompt/prompt.ts'
import { goTemplateOf, mannerOf, toldReasoning } from './prompt/template-profile.ts'
import type { PromptRenderer } from './render.ts'

export interface Work {
  readonly model: Binding
  readonly renderer: PromptRenderer
  readonly grammars: Pick<Grammars, 'make'>
  readonly progress: Progress
  readonly tenant: string
  readonly background: boolean
  readonly signal: AbortSignal
  /** Whether more is said than was read, by as much as may be. */
  readonly isAhead?: () => boolean
}

/** Returns quietly, without an `end`, when the signal aborts. */
export async function answer(
  asked: GenerateRequest,
  work: Work,
  emit: (event: GenerateEvent) => void,
): Promise<void> {
  const { model, tenant, background, signal, isAhead } = work
  const reasoning = toldReasoning(asked, goTemplateOf(asked.input))
  const request = { ...asked, ...(reasoning !== undefined && { reasoning }) }
  const prompt = await promptTokens(request, work)
  const breakpoints = await breakpointsOf(request, prompt, work)
  let startedAt = 0
  let firstAt = 0
  let cached: Cached = { reusedTokens: 0, ...uncached }
  const room = model.contextSize - prompt.length
  const limit = Math.min(request.maxTokens ?? Number.POSITIVE_INFINITY, room)
  const { input } = request
  const expected = {
    ...mannerOf(input, model),
    prompt: model.spell(prompt.slice(-tailTokens)),
    reasoning: request.reasoning !== undefined,
    tools: callableTools(input),
    held: request.format !== undefined || (input.kind === 'chat' && input.toolChoice?.mode === 'required'),
  }
  const form = answerForm(request, expected)
  const source = form && (await work.grammars.make(form, signal))
  const grammar = source === undefined ? undefined : await model.grammar(source)
  const isJson = form !== undefined && form.format?.type !== 'grammar'
  const parser = parseOutput(expected)
  // What a grammar has let pass is said, also where a token stands for it that is no text elsewhere.
  const detokenizer = new Detokenizer(model, prompt, hasControlTokens(expected) || grammar !== undefined)
  const stops = new StopMatcher(request.stop)
  const drawn: Token[] = []
  const { logprobs } = request
  const told = logprobs === undefined ? undefined : new SaidTokens<DrawnToken>()
  let reason: FinishReason = 'stop'
  let stopSequence: string | undefined
  let reported = 0

  const isSingle = input.kind === 'chat' && input.toolChoice?.parallel === false
  let calls = 0
  let isEnough = false
  const incompleteCalls: number[] = []
  const say = (said: readonly Said[]): void => {
    for (const piece of said) {
      // Of those whose calls have no mark no grammar keeps the second away.
      isEnough ||= isSingle && piece.type === 'tool-call' && calls > 0
      if (isEnough) return
      if (piece.type === 'tool-call') {
        calls++
        emit({ ...piece, id: `call_${randomBytes(12).toString('hex')}` })
      } else if (piece.type === 'tool-incomplete') incompleteCalls.push(piece.index)
      else {
        const tokens = drawn.length - reported
        reported = drawn.length
        if (piece.type === 'tool-arguments') {
          emit({ ...piece, tokens })
          told?.skip()
        } else emit({ ...piece, tokens, ...(told && { logprobs: told.take(piece.text) }) })
      }
    }
  }

  const oddsOf = request.promptLogprobs && promptOdds(prompt, addedTokens(request, prompt, model), model)
  const ending = await model.runner.run({
    prompt,
    breakpoints,
    draw: { ...toDraw(request.sampling ?? {}, model), isJson, ...(logprobs !== undefined && { logprobs }) },
    grammar,
    repeatable: typeof request.sampling?.seed === 'number',
    limit,
    tenant,
    background,
    signal,
    isAhead,
    onStart: (plan, at) => {
      cached = plan
      startedAt = performance.now()
      const { fingerprint } = model
      const divergence =
        at === undefined
          ? undefined
          : { tokens: at, behind: model.spell(prompt.slice(Math.max(0, at - tailTokens), at)) }
      emit({
        type: 'start',
        model: request.model,
        inputTokens: prompt.length,
        ...cached,
        fingerprint,
        ...(divergence && { divergence }),
      })
    },
    onCached: (actual) => {
      cached = actual
    },
    onPrompt: oddsOf && ((odds) => emit({ type: 'prompt', tokens: oddsOf(odds) })),
    onToken: (token, odds) => {
      firstAt ||= performance.now()
      drawn.push(token)
      const completed = detokenizer.push(token)
      if (odds) told?.push(toDrawnToken(token, odds, model), completed)
      const { text, stop } = stops.push(completed)
      if (text !== '') say(parser.push(text))
      stopSequence = stop
      return stop === undefined && !isEnough
    },
  })
  if (ending === 'left') return
  if (ending === 'limit') reason = drawn.length === request.maxTokens ? 'length' : 'context'
  if (stopSequence === undefined) {
    const { text, stop } = stops.push(detokenizer.flush())
    stopSequence = stop
    const rest = stop === undefined ? text + stops.flush() : text
    if (rest !== '') say(parser.push(rest))
    if (stop !== undefined) reason = 'stop'
  }
  say(parser.flush())

  // The library keeps it for itself; without it the next message would stand inside of this one.
  const end = reason === 'stop' && stopSequence === undefined && model.eot !== undefined ? [model.eot] : []
  const isCalling =
    reason === 'stop' && stopSequence === undefined && calls > 0 && incompleteCalls.length === 0
  const endedAt = performance.now()
  emit({
    type: 'end',
    reason: isCalling ? 'tool-calls' : reason,
    ...(incompleteCalls.length > 0 && { incompleteCalls }),
    ...(stopSequence !== undefined && { stopSequence }),
    usage: { inputTokens: prompt.length, ...cached, outputTokens: drawn.length },
    timings: {
      loadMs: 0,
      promptMs: (firstAt || endedAt) - startedAt,
      generateMs: firstAt ? endedAt - firstAt : 0,
    },
    ...(request.returnTokens && { tokens: [...prompt, ...drawn, ...end] }),
  })
}

/** Enough of a prompt to see whether its template opens what the answer goes on with. */
const tailTokens = 16
