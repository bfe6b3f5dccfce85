/** Finds the span that a call is a part of. */
import { type Context, propagation, type TextMapGetter, trace } from '@opentelemetry/api'
import type { CallReceived } from '../diagnostics/events.ts'

type Headers = NonNullable<CallReceived['header']>

const getter: TextMapGetter<Headers> = {
  // No propagator for HTTP lists the headers.
  keys: () => [],
  get: (header, name) => header(name.toLowerCase()),
}

/**
 * Returns the active context, such as that of the host app's instrumentation of HTTP. If it has no span, returns the
 * context that the propagator of the host app finds in the headers of the request, such as `traceparent`.
 */
export const parentOf = ({ header }: CallReceived, active: Context): Context =>
  header && !trace.getSpan(active) ? propagation.extract(active, header, getter) : active
