/** The one road from a request to its events. Every dialect and every in-process call takes it. */
import { setMaxListeners } from 'node:events'
import { nanoid } from 'nanoid'
import type { Caller } from '../accounts/auth/caller.ts'
import type { CallStatus, WorstCase } from '../accounts/usage/ledger.ts'
import type { CallMeter } from '../accounts/usage/meter.ts'
import {
  type CallGroup,
  estimateTokens,
  type MeteredCall,
  type Metering,
} from '../accounts/usage/metering.ts'
import { sanitizeTokenCount, sanitizeUsage } from '../accounts/usage/sanitize-usage.ts'
import type { Engine, EngineCall } from '../engine/engine.ts'
import type { GenerateEvent, PromptUsage, TokenUsage } from '../engine/events.ts'
import { type GenerateRequest, measureTextBytes, toTemplateMessages } from '../engine/request.ts'
import { type LimitStatus, LlmError } from '../errors.ts'

/** An answer on its way. Iterate it once. Ends quietly when the caller's signal aborts. */
export interface Generation extends AsyncIterable<GenerateEvent> {
  readonly id: string
  /** As the caller named it. */
  readonly model: string
  readonly createdAt: Date
  /** What of the prompt was there already, as the `start` event says it; absent in a stream that opened before it came. */
  readonly promptUsage?: PromptUsage
  /** How the limits stood when the call was let in, for headers; empty where there are none. */
  readonly limits: readonly LimitStatus[]
}

export interface CallOptions {
  readonly signal: AbortSignal
  /** Who asks. What the model has read for one is never used for another. */
  readonly caller?: Caller
  /** It can wait: it pauses while anybody waits for an answer. */
  readonly background?: boolean
  /** Opens after the first event or 5 s, whichever comes first; without it, after the first event. */
  readonly stream?: boolean
  /** The API that it came by, for the ledger. */
  readonly dialect?: string
  /** One of many that can wait: at half the price. */
  readonly batch?: boolean
  /** What it is a part of: one call, for limits, money and the ledger. The same object for each part. */
  readonly group?: CallGroup
  /** Hears how the limits stood when it was let in, whatever becomes of it. */
  readonly onLimits?: (limits: readonly LimitStatus[]) => void
}

/** Whose the state is that a model has read for a caller. */
export const tenantOf = (caller: Caller | undefined): string => caller?.tenant ?? caller?.id ?? ''

/** So long a model may load before headers and heartbeats go out instead of a status code. */
const openAfterMs = 5_000

/** Tokens of an answer that wait for a slow reader whose caller is counted: what nobody reads, nobody is charged. */
const readAheadTokens = 64

/**
 * Resolves when the answer has begun. What fails before is thrown here, and still has a status code. Throws `rate_limit`, `quota` and
 * `overloaded` for callers that are not let in.
 *
 * @param model as it is called in prices, limits and the ledger
 */
export async function generate(
  engine: Engine,
  request: GenerateRequest,
  call: CallOptions,
  metering?: Metering,
  model: string = request.model,
): Promise<Generation> {
  // A signal may be shared by any number of calls, which is no leak and no reason for a warning.
  setMaxListeners(0, call.signal)
  const { signal, caller, background = false } = call
  const id = nanoid()
  const engineCall = { signal, tenant: tenantOf(caller), background }
  const { group } = call
  const requests = group?.requests ?? [request]
  const metered = toMeteredCall(id, { requests, model }, call)
  // Without anything to wait for the engine is asked at once: it hears of an abort that comes right behind.
  const meter = metering && (await (group ? metering.beginPart(group, metered) : metering.begin(metered)))
  if (meter) call.onLimits?.(meter.limits)
  const asked = meter
    ? paid(engine, { request, requests, model }, engineCall, meter)
    : engine.generate(request, engineCall)
  const { first, opened } = await untilStarted(complete(asked, signal), call.stream ? openAfterMs : undefined)
  return {
    id,
    model: request.model,
    createdAt: new Date(),
    limits: meter?.limits ?? [],
    ...(first?.type === 'start' && { promptUsage: first }),
    [Symbol.asyncIterator]: () => opened,
  }
}

interface Asked {
  /** All that is let in together. */
  readonly requests: readonly GenerateRequest[]
  /** As it is called in prices, limits and the ledger, and where it is loaded. */
  readonly model: string
}

const toMeteredCall = (id: string, { requests, model }: Asked, call: CallOptions): MeteredCall => ({
  id,
  caller: call.caller,
  model,
  dialect: call.dialect,
  isBatch: call.batch,
  estimatedInputTokens: requests.reduce(
    (sum, request) =>
      sum + estimateTokens(measureTextBytes(request), toTemplateMessages(request.input).length),
    0,
  ),
  maxTokens: sumOf(requests, ({ maxTokens }) => maxTokens),
  isUnqueued: call.background,
})

/** Settles once, whatever becomes of it: ended, failed, or left; with what its reader was given. */
async function* paid(
  engine: Engine,
  { request, ...asked }: Asked & { readonly request: GenerateRequest },
  call: EngineCall,
  meter: CallMeter,
): AsyncGenerator<GenerateEvent> {
  let usage: TokenUsage | undefined
  let status: CallStatus = 'aborted'
  try {
    const maxTokens = await meter.admit(call.signal, () => mostOf(engine, asked, call), request.maxTokens)
    if (maxTokens === undefined) return
    const clamped = Number.isFinite(maxTokens) ? { ...request, maxTokens } : request
    const counted = meter.isCounted ? { ...call, readAheadTokens } : call
    for await (const event of engine.generate(clamped, counted)) {
      if (!meter.isOpen) return
      usage = usageAfter(usage, event)
      // Before its reader knows that it is over: then it is in the ledger.
      if (event.type === 'end') await atMost(settleMs, meter.settle(usage, 'ended'))
      else if (usage) meter.onProgress(usage)
      yield event
    }
    if (!call.signal.aborted) status = 'failed'
  } catch (cause) {
    // To be cancelled is no failure.
    if (call.signal.aborted) return
    status = 'failed'
    throw cause
  } finally {
    await atMost(settleMs, meter.settle(usage, status))
  }
}

/** So long an answer that is over waits to be in the ledger. A database that is away hears of it later. */
const settleMs = 2_000

async function atMost(limitMs: number, settled: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs)
  })
  await Promise.race([settled, limit]).finally(() => clearTimeout(timer))
}

/** The most that all can use. The model counts their prompts, and says then how much there is room for. */
async function mostOf(engine: Engine, { requests, model }: Asked, call: EngineCall): Promise<WorstCase> {
  const each: WorstCase[] = []
  for (const request of requests) each.push(await mostOfOne(engine, request, model, call))
  return {
    inputTokens: each.reduce((sum, { inputTokens }) => sum + inputTokens, 0),
    outputTokens: sumOf(
      each,
      ({ outputTokens, contextRoom }) => outputTokens && Math.min(outputTokens, contextRoom ?? outputTokens),
    ),
    contextRoom: sumOf(each, ({ contextRoom }) => contextRoom),
  }
}

async function mostOfOne(
  engine: Engine,
  request: GenerateRequest,
  model: string,
  call: EngineCall,
): Promise<WorstCase> {
  const { maxTokens: outputTokens, overflow } = request
  const inputTokens = await engine.countTokens(request, call)
  const names = [model, request.model]
  const contextSize = engine.loaded().find(({ name }) => names.includes(name))?.contextSize
  if (!contextSize) return { inputTokens, outputTokens }
  // What is left when the oldest messages are cut off depends on how long the answer may be: so that stays as it is.
  if (overflow === 'truncate' && inputTokens >= contextSize)
    return { inputTokens: contextSize, outputTokens, contextRoom: contextSize }
  // The last token of an answer needs no room.
  return { inputTokens, outputTokens, contextRoom: Math.max(1, contextSize - inputTokens + 1) }
}

/** Nothing where one of them is not known. */
const sumOf = <Item>(
  items: readonly Item[],
  numberOf: (item: Item) => number | undefined,
): number | undefined =>
  items.reduce<number | undefined>((sum, item) => {
    const number = numberOf(item)
    return sum === undefined || number === undefined ? undefined : sum + number
  }, 0)

function usageAfter(usage: TokenUsage | undefined, event: GenerateEvent): TokenUsage | undefined {
  if (event.type === 'start') {
    const { inputTokens, reusedTokens, cacheReadTokens, cacheWriteTokens } = event
    return sanitizeUsage({ inputTokens, reusedTokens, cacheReadTokens, cacheWriteTokens, outputTokens: 0 })
  }
  if (event.type === 'end') return sanitizeUsage(event.usage)
  if (!usage || !('tokens' in event) || typeof event.tokens !== 'number') return usage
  return { ...usage, outputTokens: usage.outputTokens + sanitizeTokenCount(event.tokens) }
}

/** An engine that stops without an `end` would look like a whole answer. */
async function* complete(
  events: AsyncIterable<GenerateEvent>,
  signal: AbortSignal,
): AsyncGenerator<GenerateEvent> {
  // A reader that never pulls never returns either, so leaving must not depend on it.
  const leave = (): void => {
    iterator.return?.().catch(() => {}) // Nobody waits for it, and a host must not fall over it.
  }
  const iterator = events[Symbol.asyncIterator]()
  signal.addEventListener('abort', leave, { once: true })
  try {
    for (;;) {
      const { value: event, done } = await iterator.next()
      if (signal.aborted) return
      if (done) throw new LlmError('upstream', 'The engine stopped before the answer was complete.')
      yield event
      if (event.type === 'end') return
    }
  } finally {
    signal.removeEventListener('abort', leave)
    leave()
  }
}

/**
 * Waits for the first event, at most `limitMs`: `first` is it, if it came. All of them are in `opened`, a plain iterator,
 * not a generator: `return()` must reach the engine even when nobody ever pulled.
 */
async function untilStarted<T>(
  events: AsyncGenerator<T>,
  limitMs: number | undefined,
): Promise<{ readonly first: T | undefined; readonly opened: AsyncIterator<T> }> {
  let first: Promise<IteratorResult<T>> | undefined = events.next()
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<undefined>((resolve) => {
    if (limitMs !== undefined) timer = setTimeout(() => resolve(undefined), limitMs)
  })
  let come: IteratorResult<T> | undefined
  try {
    come = await Promise.race([first, limit])
  } finally {
    clearTimeout(timer)
  }
  first.catch(() => {}) // Reported to whoever pulls.

  const opened: AsyncIterator<T> = {
    next: () => {
      const step = first ?? events.next()
      first = undefined
      return step
    },
    return: (value?: unknown) => events.return(value),
  }
  return { first: come?.value, opened }
}
