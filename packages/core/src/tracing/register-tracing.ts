/** Creates a span for each call that uses a model, from the events of the diagnostics channels. */
import { context, ROOT_CONTEXT, type Tracer, type TracerProvider, trace } from '@opentelemetry/api'
import { subscribe } from '../diagnostics/channels.ts'
import type { CallReceived, ToolEnded } from '../diagnostics/events.ts'
import type { Llm } from '../llm.ts'
import { describeTool, operationOf } from './attributes.ts'
import { CallSpan } from './call-span.ts'
import { describeContent } from './content.ts'
import { parentOf } from './parent-context.ts'

/** Options of `registerTracing()`. */
export interface TracingOptions {
  /** Where spans go. @default the global provider of `@opentelemetry/api` */
  readonly tracerProvider?: TracerProvider | undefined
  /** Whether spans contain prompts, answers and the descriptions of tools. @default false */
  readonly captureContent?: boolean | undefined
}

/**
 * Creates spans by the semantic conventions for generative AI: one for each answer, embedding and ranking, and one for
 * each tool that `llm.chat()` runs. Returns a function that ends this.
 */
export function registerTracing(llm: Llm, options: TracingOptions = {}): () => void {
  const { tracerProvider = trace, captureContent = false } = options
  const tracer = tracerProvider.getTracer('@modelmount/core')
  /** Spans of running calls that are recorded, by the id of the call. */
  const spans = new Map<string, CallSpan>()
  const end = (id: string): CallSpan | undefined => {
    const span = spans.get(id)
    spans.delete(id)
    return span
  }
  const unsubscribe = subscribe(llm, {
    'modelmount:call:start': (event) => {
      const span = startSpan(tracer, event)
      if (span) spans.set(event.call.id, span)
    },
    'modelmount:cache:hit': ({ call, tokens }) => spans.get(call.id)?.addEvent('cache.hit', { tokens }),
    'modelmount:cache:write': ({ call, tokens }) => spans.get(call.id)?.addEvent('cache.write', { tokens }),
    'modelmount:limit:refused': ({ call }) => spans.get(call.id)?.addEvent('limit.refused'),
    'modelmount:call:end': (event) => end(event.call.id)?.end(event, undefined, event.status),
    'modelmount:call:error': (event) => end(event.call.id)?.end(event, event.error, event.status),
    'modelmount:tool:end': (event) => recordTool(tracer, event, captureContent),
    ...(captureContent && {
      'modelmount:call:content': (event) => spans.get(event.call.id)?.setAttributes(describeContent(event)),
    }),
  })
  return () => {
    unsubscribe()
    for (const span of spans.values()) span.abandon()
    spans.clear()
  }
}

/** Undefined for a call that uses no model, and for one that is not sampled. */
function startSpan(tracer: Tracer, event: CallReceived): CallSpan | undefined {
  const operation = operationOf(event)
  if (!operation) return undefined
  // Items of batches run in a loop that some request has started, of which they are no part.
  const parent = event.call.isBatchItem ? ROOT_CONTEXT : parentOf(event, context.active())
  const span = new CallSpan(tracer, event, operation, parent)
  return span.isRecording ? span : undefined
}

/** The span is a child of the span in which the app has called `llm.chat()`. */
function recordTool(tracer: Tracer, event: ToolEnded, captureContent: boolean): void {
  const endTime = Date.now()
  const startTime = endTime - event.durationMs
  const { name, attributes, status } = describeTool(event, captureContent)
  const span = tracer.startSpan(name, { attributes, startTime })
  if (status) span.setStatus(status)
  span.end(endTime)
}
