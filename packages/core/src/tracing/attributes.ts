/**
 * Attributes of spans, by version 0.1.0 of OpenTelemetry's semantic conventions for generative AI. Names that begin with
 * `modelmount.` are our own.
 */
import { type Attributes, type SpanStatus, SpanStatusCode } from '@opentelemetry/api'
import type { CallOver, CallReceived, ToolEnded } from '../diagnostics/events.ts'
import type { FinishReason } from '../engine/events.ts'
import type { LlmError } from '../errors.ts'

/** Undefined for a call that uses no tokens, such as one that counts them. */
export function operationOf({ call, request }: CallReceived): string | undefined {
  if (call.kind === 'generate') return request.input === 'chat' ? 'chat' : 'text_completion'
  if (call.kind === 'embed') return 'embeddings'
  return call.kind === 'rerank' ? 'rerank' : undefined
}

export function describeRequest({ call, request, header }: CallReceived, operation: string): Attributes {
  const { maxTokens, sampling = {}, format, answersPerPrompt } = request
  const isJson = format === 'json' || format === 'json-schema'
  return defined({
    'gen_ai.operation.name': operation,
    'gen_ai.provider.name': 'modelmount',
    'gen_ai.request.model': call.model || undefined,
    'gen_ai.request.max_tokens': maxTokens,
    'gen_ai.request.temperature': sampling.temperature,
    'gen_ai.request.top_p': sampling.topP,
    'gen_ai.request.top_k': sampling.topK,
    'gen_ai.request.frequency_penalty': sampling.frequencyPenalty,
    'gen_ai.request.presence_penalty': sampling.presencePenalty,
    'gen_ai.request.seed': typeof sampling.seed === 'number' ? sampling.seed : undefined,
    'gen_ai.request.choice.count': answersPerPrompt === 1 ? undefined : answersPerPrompt,
    'gen_ai.request.stream': request.isStream || undefined,
    'gen_ai.output.type': isJson ? 'json' : undefined,
    'gen_ai.embeddings.dimension.count': request.dimensions,
    ...serverOf(header?.('host')),
    'http.route': call.route,
    'modelmount.call.id': call.id,
    'modelmount.request.id': call.requestId,
    'modelmount.dialect': call.dialect,
    'modelmount.batch_item': call.isBatchItem || undefined,
  })
}

/** The address as the client names it. Left out without a port, which the conventions require beside it. */
function serverOf(host: string | undefined): Attributes {
  if (!host || !URL.canParse(`http://${host}`)) return {}
  const { hostname, port } = new URL(`http://${host}`)
  return port === '' ? {} : { 'server.address': hostname, 'server.port': Number(port) }
}

export function describeEnd(
  { call, usage, finishReasons, firstTokenMs }: CallOver,
  end: { readonly error: LlmError | undefined; readonly status: string; readonly isStream: boolean },
): Attributes {
  const { '5m': short, '1h': long } = usage?.cacheWriteTokens ?? { '5m': 0, '1h': 0 }
  const isGenerated = call.kind === 'generate'
  return defined({
    'gen_ai.response.model': usage && call.model,
    'gen_ai.response.id': isGenerated && usage ? call.id : undefined,
    'gen_ai.response.finish_reasons': usage && isGenerated ? finishReasons.map(toReason) : undefined,
    'gen_ai.response.time_to_first_chunk':
      end.isStream && firstTokenMs !== undefined ? firstTokenMs / 1_000 : undefined,
    'gen_ai.usage.input_tokens': usage?.inputTokens,
    'gen_ai.usage.output_tokens': isGenerated ? usage?.outputTokens : undefined,
    'gen_ai.usage.cache_read.input_tokens': usage?.reusedTokens || undefined,
    'gen_ai.usage.cache_write.input_tokens': short + long || undefined,
    'error.type': end.error?.code,
    'modelmount.status': end.status,
  })
}

/** The conventions call an answer without its end an error. */
function toReason(reason: FinishReason | undefined): string {
  if (reason === 'tool-calls') return 'tool_call'
  if (reason === 'context') return 'length'
  return reason ?? 'error'
}

export function describeTool(
  { name, description, toolCallId, error }: ToolEnded,
  captureContent: boolean,
): { readonly name: string; readonly attributes: Attributes; readonly status: SpanStatus | undefined } {
  const hasFailed = error !== undefined
  return {
    name: `execute_tool ${name}`,
    attributes: defined({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': name,
      'gen_ai.tool.call.id': toolCallId,
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.description': captureContent ? description : undefined,
      'error.type': hasFailed ? (error instanceof Error ? error.name : '_OTHER') : undefined,
    }),
    status: hasFailed ? { code: SpanStatusCode.ERROR } : undefined,
  }
}

const defined = (attributes: Attributes): Attributes =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))
