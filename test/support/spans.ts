/** Records the spans of a test with OpenTelemetry's SDK, and checks their names against the conventions. */
import { context, propagation, trace } from '@opentelemetry/api'
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node'
import * as conventions from '@opentelemetry/semantic-conventions'
import * as incubating from '@opentelemetry/semantic-conventions/incubating'

export interface SpanRecorder {
  /** Spans that have ended, in the order of their ends. */
  spans(): readonly ReadableSpan[]
  named(name: string): ReadableSpan
  reset(): void
}

/** Registers a global provider, a context manager and the propagator of W3C, as host apps do. */
export function recordSpans(): SpanRecorder & { close(): Promise<void> } {
  const exporter = new InMemorySpanExporter()
  const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  provider.register()
  return {
    spans: () => exporter.getFinishedSpans(),
    named: (name) => {
      const found = exporter.getFinishedSpans().filter((span) => span.name === name)
      const [only] = found
      if (!only || found.length > 1)
        throw new Error(
          `Expected one span '${name}' among: ${exporter.getFinishedSpans().map((span) => span.name)}`,
        )
      return only
    },
    reset: () => exporter.reset(),
    close: async () => {
      await provider.shutdown()
      for (const api of [trace, context, propagation]) api.disable()
    },
  }
}

/**
 * All attributes of the conventions: those of the npm package, version 1.45.0, and of version 0.1.0 of
 * open-telemetry/semantic-conventions-genai, which is newer than the package.
 */
const attributeNames = new Set([
  ...Object.entries({ ...incubating, ...conventions }).flatMap(([name, value]) =>
    name.startsWith('ATTR_') && typeof value === 'string' ? [value] : [],
  ),
  'gen_ai.usage.cache_write.input_tokens',
])

/** The attributes of a span that the conventions do not have. */
export const unknownAttributes = (span: ReadableSpan): readonly string[] =>
  Object.keys(span.attributes).filter((name) => !attributeNames.has(name) && !name.startsWith('modelmount.'))

export const parentOf = (span: ReadableSpan): string | undefined => span.parentSpanContext?.spanId
export const idOf = (span: ReadableSpan): string => span.spanContext().spanId
export const traceOf = (span: ReadableSpan): string => span.spanContext().traceId
/** In milliseconds. */
export const startOf = ({ startTime: [seconds, nanos] }: ReadableSpan): number => seconds * 1e3 + nanos / 1e6
export const endOf = ({ endTime: [seconds, nanos] }: ReadableSpan): number => seconds * 1e3 + nanos / 1e6
