/** Publishes what happens to a call on the diagnostics channels. */
import type { CallUsage } from '../../accounts/usage/call-usage.ts'
import { hasSubscribers, publish } from '../../diagnostics/channels.ts'
import { describeCall } from '../../diagnostics/describe-call.ts'
import type { CallOver, CallRequest, DiagnosticEvents } from '../../diagnostics/events.ts'
import type { EmbedRequest } from '../../engine/embeddings.ts'
import type { GenerateRequest } from '../../engine/request.ts'
import { type Call, type CallEnd, isGenerateRequest } from '../call.ts'
import { recordAnswers } from '../output/answer-content.ts'
import type { CallStep } from '../step.ts'

/** Times of a call that began while a channel had a subscriber, in milliseconds of `performance.now()`. */
interface CallTimes {
  readonly startedAt: number
  admittedAt?: number
  firstTokenAt?: number
  usage?: CallUsage
  /** The answers so far. Undefined if no subscriber wants them. */
  answers?: ReturnType<typeof recordAnswers>
}

const names: readonly (keyof DiagnosticEvents)[] = [
  'modelmount:call:start',
  'modelmount:call:admitted',
  'modelmount:call:progress',
  'modelmount:call:first-token',
  'modelmount:call:end',
  'modelmount:call:error',
  'modelmount:call:content',
  'modelmount:limit:refused',
  'modelmount:cache:hit',
  'modelmount:cache:write',
]

/** The first and the last step of a pipeline. */
export function createDiagnosticsSteps(llmOf: () => object): {
  readonly first: CallStep
  readonly last: CallStep
} {
  const watched = new WeakMap<Call, CallTimes>()
  const first: CallStep = {
    name: 'diagnostics',
    before(call) {
      if (!names.some(hasSubscribers)) return
      const times: CallTimes = { startedAt: performance.now() }
      watched.set(call, times)
      publish('modelmount:call:start', () => ({
        ...{ llm: llmOf(), call: describeCall(call) },
        ...{ request: describeRequest(call), header: call.header, usage: () => times.usage },
      }))
      if (hasSubscribers('modelmount:call:progress'))
        call.onProgress = (progress) =>
          publish('modelmount:call:progress', () => ({ llm: llmOf(), call: describeCall(call), progress }))
    },
    onUsage(call, usage) {
      const times = watched.get(call)
      if (!times) return
      times.usage = usage
      if (times.firstTokenAt !== undefined || usage.outputTokens + usage.undeliveredTokens === 0) return
      times.firstTokenAt = performance.now()
      const firstTokenMs = times.firstTokenAt - times.startedAt
      publish('modelmount:call:first-token', () => ({ llm: llmOf(), call: describeCall(call), firstTokenMs }))
    },
    after(call, end) {
      const times = watched.get(call)
      if (!times) return
      watched.delete(call)
      publishEnd(llmOf(), call, end, times)
    },
  }
  const last: CallStep = {
    name: 'admitted',
    before(call) {
      const times = watched.get(call)
      if (!times) return
      times.admittedAt = performance.now()
      const queueMs = times.admittedAt - times.startedAt
      if (call.kind === 'generate' && hasSubscribers('modelmount:call:content'))
        times.answers = recordAnswers(call)
      publish('modelmount:call:admitted', () => ({ llm: llmOf(), call: describeCall(call), queueMs }))
    },
  }
  return { first, last }
}

function publishEnd(llm: object, call: Call, end: CallEnd, times: CallTimes): void {
  const { error, status, usage, finishReasons, timings, durationMs } = end
  const event = { llm, call: describeCall(call) }
  const over = (): CallOver => ({
    ...{ ...event, durationMs, usage, finishReasons, timings },
    costNanoUsd: usage && call.costOf?.(usage),
    queueMs: since(times, times.admittedAt),
    firstTokenMs: since(times, times.firstTokenAt),
  })
  const { reusedTokens = 0, cacheWriteTokens = { '5m': 0, '1h': 0 } } = usage ?? {}
  const written = cacheWriteTokens['5m'] + cacheWriteTokens['1h']
  if (reusedTokens > 0) publish('modelmount:cache:hit', () => ({ ...event, tokens: reusedTokens }))
  if (written > 0) publish('modelmount:cache:write', () => ({ ...event, tokens: written }))
  if (error?.code === 'rate_limit' || error?.code === 'quota')
    publish('modelmount:limit:refused', () => ({ ...event, error }))
  if (call.kind === 'generate')
    publish('modelmount:call:content', () => ({
      ...event,
      inputs: call.requests.filter(isGenerateRequest).map(({ input }) => input),
      answers: times.answers ?? [],
    }))
  if (error)
    publish('modelmount:call:error', () => ({
      ...{ ...over(), error },
      status: status === 'aborted' ? 'aborted' : 'failed',
    }))
  else
    publish('modelmount:call:end', () => ({ ...over(), status: status === 'aborted' ? 'aborted' : 'ended' }))
}

const since = ({ startedAt }: CallTimes, at: number | undefined): number | undefined =>
  at === undefined ? undefined : at - startedAt

function describeRequest(call: Call): CallRequest {
  const request = (call.requests[0] ?? {}) as Partial<GenerateRequest & EmbedRequest>
  return {
    input: request.input?.kind,
    isStream: call.isStream,
    answersPerPrompt: call.answersPerPrompt,
    maxTokens: request.maxTokens,
    sampling: request.sampling,
    format: request.format?.type,
    dimensions: request.dimensions,
  }
}
