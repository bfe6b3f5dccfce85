/** Language models of the SDK that generate in process. */
import type { LanguageModelV3, LanguageModelV3Content, LanguageModelV3GenerateResult } from '@ai-sdk/provider'
import type { Generation } from '@modelmount/core'
import { type ModelSource, providerName, toCallOptions, toSdkError, withSdkErrors } from './model-call.ts'
import { type GenerateCall, type LanguageModelCallOptions, toGenerateCall } from './request.ts'
import { failedFinish, type StreamPart, StreamPartBuilder } from './stream-parts.ts'

/**
 * Creates a model of version 3 of the specification. Version 6 of the SDK uses it as it is, and version 7 through a
 * proxy, in which private fields of a class would fail.
 */
export function createLanguageModel(source: ModelSource): LanguageModelV3 {
  const { modelId } = source
  return {
    specificationVersion: 'v3',
    provider: providerName,
    modelId,
    // All URLs, so that the SDK does not download a file that is then refused.
    supportedUrls: { '*/*': [/^/] },

    async doGenerate(options: LanguageModelCallOptions) {
      const { abortSignal: signal = new AbortController().signal } = options
      const call = toGenerateCall(modelId, options)
      return withSdkErrors(modelId, signal, async () => {
        const generation = await generate(source, call, signal, false)
        return { ...(await collect(toParts(generation, signal, false))), warnings: call.warnings }
      })
    },

    async doStream(options: LanguageModelCallOptions) {
      const { abortSignal, includeRawChunks = false } = options
      const reader = new AbortController()
      const signal = abortSignal ? AbortSignal.any([abortSignal, reader.signal]) : reader.signal
      const call = toGenerateCall(modelId, options)
      const generation = await withSdkErrors(modelId, signal, () => generate(source, call, signal, true))

      async function* readParts(): AsyncGenerator<StreamPart> {
        yield { type: 'stream-start', warnings: call.warnings }
        try {
          yield* toParts(generation, signal, includeRawChunks)
        } catch (cause) {
          const error = toSdkError(cause, modelId, signal)
          if (signal.aborted) throw error
          yield { type: 'error', error }
          yield failedFinish
        }
      }
      return { stream: toReadableStream(readParts(), reader) }
    },
  }
}

function generate(
  source: ModelSource,
  { request, callerOptions }: GenerateCall,
  signal: AbortSignal,
  stream: boolean,
): Promise<Generation> {
  return source.llm.generate(request, { ...toCallOptions(source, callerOptions), signal, stream })
}

/** Throws the reason of the signal if the answer stops before its end, because the signal has aborted. */
async function* toParts(
  generation: Generation,
  signal: AbortSignal,
  isRaw: boolean,
): AsyncGenerator<StreamPart> {
  const { id, createdAt: timestamp, model: modelId } = generation
  yield { type: 'response-metadata', id, timestamp, modelId }
  const builder = new StreamPartBuilder()
  for await (const event of generation) {
    if (isRaw) yield { type: 'raw', rawValue: event }
    yield* builder.push(event)
  }
  signal.throwIfAborted()
}

/** @param reader aborted when the reader cancels the stream */
function toReadableStream(
  parts: AsyncGenerator<StreamPart>,
  reader: AbortController,
): ReadableStream<StreamPart> {
  return new ReadableStream<StreamPart>(
    {
      async pull(controller) {
        const { done, value } = await parts.next()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: (reason) => reader.abort(reason),
    },
    { highWaterMark: 0 },
  )
}

/** Joins the parts of an answer. */
async function collect(
  parts: AsyncIterable<StreamPart>,
): Promise<Omit<LanguageModelV3GenerateResult, 'warnings'>> {
  const content: LanguageModelV3Content[] = []
  let response: LanguageModelV3GenerateResult['response']
  let { finishReason, usage }: Pick<LanguageModelV3GenerateResult, 'finishReason' | 'usage'> = failedFinish
  let providerMetadata: LanguageModelV3GenerateResult['providerMetadata']
  for await (const part of parts) {
    const last = content.at(-1)
    if (part.type === 'text-start') content.push({ type: 'text', text: '' })
    else if (part.type === 'reasoning-start') content.push({ type: 'reasoning', text: '' })
    else if (part.type === 'text-delta' || part.type === 'reasoning-delta') {
      if (last && 'text' in last) last.text += part.delta
    } else if (part.type === 'tool-call') content.push(part)
    else if (part.type === 'response-metadata') {
      const { type: _, ...metadata } = part
      response = metadata
    } else if (part.type === 'finish') ({ finishReason, usage, providerMetadata } = part)
  }
  return {
    content,
    finishReason,
    usage,
    ...(response && { response }),
    ...(providerMetadata && { providerMetadata }),
  }
}
