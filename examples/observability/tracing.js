/** Sends spans to a collector, prints them, or creates none. */
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import {
  BatchSpanProcessor,
  ConsoleSpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node'

const processors = {
  // To http://127.0.0.1:4318, or to OTEL_EXPORTER_OTLP_ENDPOINT.
  otlp: () => [new BatchSpanProcessor(new OTLPTraceExporter())],
  console: () => [new SimpleSpanProcessor(new ConsoleSpanExporter())],
  none: () => [],
}

/** @param exporter `otlp`, `console` or `none` */
export function startTracing(exporter) {
  const provider = new NodeTracerProvider({ spanProcessors: processors[exporter]() })
  provider.register()
  return provider
}
