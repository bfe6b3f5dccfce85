/** The spans of a real model, as a real collector receives them. */

import { registerTracing } from '@modelmount/core/tracing'
import { context, propagation, trace } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { startCollector } from '../support/otel-collector.ts'
import { serve } from '../support/served.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'

test('a collector receives one trace from the request to the last token', async () => {
  const collector = await startCollector(emptyFolder())
  const exporter = new OTLPTraceExporter({ url: collector.url })
  const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] })
  provider.register()
  onTestFinished(async () => {
    await provider.shutdown()
    for (const api of [trace, context, propagation]) api.disable()
    await collector.stop()
  })
  const { llm, post } = await serve({ models: emptyFolder() })
  onTestFinished(registerTracing(llm))

  const body = { model: 'tiny', messages: [{ role: 'user', content: 'Hello' }], stream: true }
  const response = await post('/v1/chat/completions', body, {
    traceparent: `00-${traceId}-b7ad6b7169203331-01`,
  })
  await response.text()
  await expect
    .poll(() => provider.forceFlush().then(collector.printed))
    .toContain('Name           : chat tiny')

  const spans = collector
    .printed()
    .split(/^Span #/m)
    .slice(1)
  const field = (span: string, name: string): string | undefined =>
    new RegExp(`^    ${name}\\s*: (.*)$`, 'm').exec(span)?.[1]?.trim()
  expect(spans.map((span) => field(span, 'Name')).sort()).toEqual([
    'chat tiny',
    'decode',
    'load',
    'prefill',
    'queue',
  ])
  expect(spans.map((span) => field(span, 'Trace ID'))).toEqual(Array(5).fill(traceId))
  const chat = spans.find((span) => field(span, 'Name') === 'chat tiny') ?? ''
  expect(chat).toContain('gen_ai.provider.name: Str(modelmount)')
  expect(chat).toMatch(/gen_ai\.usage\.output_tokens: Int\([1-9]/)
  for (const span of spans) if (span !== chat) expect(field(span, 'Parent ID')).toBe(field(chat, 'ID'))
}, 1_000_000)
