/** The one road from a request to its events. Every dialect and every in-process call takes it. */
import { setMaxListeners } from 'node:events'
import { nanoid } from 'nanoid'
import type { Caller } from './caller.ts'
import type { Engine } from './engine/engine.ts'
import type { GenerateEvent, PromptUsage } from './engine/events.ts'
import type { GenerateRequest } from './engine/request.ts'
import { LlmError } from './errors.ts'

/** An answer on its way. Iterate it once. Ends quietly when the caller's signal aborts. */
export interface Generation extends AsyncIterable<GenerateEvent> {
  readonly id: string
  /** As the caller named it. */
  readonly model: string
  readonly createdAt: Date
  /** What of the prompt was there already, as the `start` event says it; absent in a stream that opened before it came. */
  readonly promptUsage?: PromptUsage
}

export interface CallOptions {
  readonly signal: AbortSignal
  /** Who asks. What the model has read for one is never used for another. */
  readonly caller?: Caller
  /** It can wait: it pauses while anybody waits for an answer. */
  readonly background?: boolean
  /** Opens after the first event or 5 s, whichever comes first; without it, after the first event. */
  readonly stream?: boolean
}

/** Whose the state is that a model has read for a caller. */
export const tenantOf = (caller: Caller | undefined): string => caller?.tenant ?? caller?.id ?? ''

/** So long a model may load before headers and heartbeats go out instead of a status code. */
const openAfterMs = 5_000

/** Resolves when the answer has begun. What fails before is thrown here, and still has a status code. */
export async function generate(
  engine: Engine,
  request: GenerateRequest,
  call: CallOptions,
): Promise<Generation> {
  // A signal may be shared by any number of calls, which is no leak and no reason for a warning.
  setMaxListeners(0, call.signal)
  const { signal, caller, background = false } = call
  const events = whole(engine.generate(request, { signal, tenant: tenantOf(caller), background }), signal)
  const { first, opened } = await untilStarted(events, call.stream ? openAfterMs : undefined)
  return {
    id: nanoid(),
    model: request.model,
    createdAt: new Date(),
    ...(first?.type === 'start' && { promptUsage: first }),
    [Symbol.asyncIterator]: () => opened,
  }
}

/** An engine that stops without an `end` would look like a whole answer. */
async function* whole(
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
