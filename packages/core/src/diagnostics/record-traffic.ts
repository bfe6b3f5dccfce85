/** Counts the calls of an `Llm` over time, from their events. */
import type { CountedTraffic } from '../accounts/traffic/traffic-recorder.ts'
import type { CallKind } from '../calls/kind.ts'
import { subscribe } from './channels.ts'
import type { CallEnded, CallFailed } from './events.ts'

/** The kinds of calls that use tokens. */
const counted: readonly CallKind[] = ['generate', 'embed', 'rerank']

/** Returns a function that ends it. */
export const recordTraffic = (llm: object, add: (call: CountedTraffic) => void): (() => void) => {
  const onOver = (event: CallEnded | CallFailed): void => {
    if (counted.includes(event.call.kind)) add(toTraffic(event))
  }
  return subscribe(llm, { 'modelmount:call:end': onOver, 'modelmount:call:error': onOver })
}

function toTraffic({
  call,
  status,
  usage,
  costNanoUsd = 0,
  durationMs,
  firstTokenMs,
}: CallEnded | CallFailed) {
  const isError = status === 'failed'
  return {
    ...{ caller: call.caller ?? '', tenant: call.tenant, isError, durationMs, firstTokenMs },
    // A client can fail with any name of a model.
    model: call.isKnownModel || !isError ? call.model : '',
    inputTokens: usage?.inputTokens ?? 0,
    cachedInputTokens: usage?.reusedTokens ?? 0,
    outputTokens: usage?.outputTokens ?? 0,
    nanoUsd: costNanoUsd,
  }
}
