/** The span of one call, with a child span for each of its phases. */
import {
  type Attributes,
  type Context,
  type Span,
  SpanKind,
  type SpanStatus,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import type { CallOver, CallReceived } from '../diagnostics/events.ts'
import type { LlmError } from '../errors.ts'
import { describeEnd, describeRequest } from './attributes.ts'

/** A part of a call, in milliseconds since its start. */
interface Phase {
  readonly name: 'queue' | 'load' | 'prefill' | 'decode'
  readonly fromMs: number
  readonly toMs: number
}

export class CallSpan {
  readonly #tracer: Tracer
  readonly #span: Span
  readonly #context: Context
  readonly #isStream: boolean
  readonly #startedAt = Date.now()

  constructor(tracer: Tracer, event: CallReceived, operation: string, parent: Context) {
    const { model } = event.call
    this.#tracer = tracer
    this.#isStream = event.request.isStream
    this.#span = tracer.startSpan(
      model === '' ? operation : `${operation} ${model}`,
      {
        kind: kindOf(event, parent),
        attributes: describeRequest(event, operation),
        startTime: this.#startedAt,
      },
      parent,
    )
    this.#context = trace.setSpan(parent, this.#span)
  }

  get isRecording(): boolean {
    return this.#span.isRecording()
  }

  setAttributes(attributes: Attributes): void {
    this.#span.setAttributes(attributes)
  }

  addEvent(name: string, attributes: Attributes = {}): void {
    const prefixed = Object.entries(attributes).map(([key, value]) => [`modelmount.${key}`, value])
    this.#span.addEvent(`modelmount.${name}`, Object.fromEntries(prefixed))
  }

  end(over: CallOver, error: LlmError | undefined, status: 'ended' | 'aborted' | 'failed'): void {
    const { queueMs, firstTokenMs, durationMs } = over
    const at = (ms: number): number => this.#startedAt + ms
    if (queueMs !== undefined) this.#span.addEvent('modelmount.admitted', at(queueMs))
    if (firstTokenMs !== undefined) this.#span.addEvent('modelmount.first_token', at(firstTokenMs))
    for (const { name, fromMs, toMs } of phasesOf(over))
      this.#tracer.startSpan(name, { startTime: at(fromMs) }, this.#context).end(at(toMs))
    this.#span.setAttributes(describeEnd(over, { error, status, isStream: this.#isStream }))
    if (error) this.#span.setStatus(statusOf(error))
    this.#span.end(at(durationMs))
  }

  /** Ends the span of a call that still runs. */
  abandon(): void {
    this.#span.end()
  }
}

/**
 * A call of the app is a call to another process, the model process. A call over HTTP is a part of the host app's span,
 * or else the first span of its request in this process.
 */
function kindOf({ call, header }: CallReceived, parent: Context): SpanKind {
  if (call.isBatchItem) return SpanKind.INTERNAL
  if (!header) return SpanKind.CLIENT
  const span = trace.getSpanContext(parent)
  return span && !span.isRemote ? SpanKind.INTERNAL : SpanKind.SERVER
}

/** Phases of an admitted call. Without the engine's times, as for a client that has left, only those that are known. */
function phasesOf({ queueMs, firstTokenMs, durationMs, timings }: CallOver): readonly Phase[] {
  if (queueMs === undefined) return []
  const phases: Phase[] = [{ name: 'queue', fromMs: 0, toMs: queueMs }]
  const [first] = timings
  const limit = firstTokenMs ?? durationMs
  const loadedMs = Math.min(queueMs + (first?.loadMs ?? 0), limit)
  if (loadedMs > queueMs) phases.push({ name: 'load', fromMs: queueMs, toMs: loadedMs })
  if (firstTokenMs === undefined) return phases
  // Between load and prefill, the prompt may wait for a slot.
  if (first)
    phases.push({
      name: 'prefill',
      fromMs: Math.max(loadedMs, firstTokenMs - first.promptMs),
      toMs: firstTokenMs,
    })
  const generateMs = Math.max(...timings.map((one) => one?.generateMs ?? durationMs))
  phases.push({ name: 'decode', fromMs: firstTokenMs, toMs: Math.min(firstTokenMs + generateMs, durationMs) })
  return phases
}

/** Only messages about the server: others may quote the request. */
const statusOf = ({ code, message }: LlmError): SpanStatus => ({
  code: SpanStatusCode.ERROR,
  ...((code === 'internal' || code === 'upstream' || code === 'unavailable') && { message }),
})
