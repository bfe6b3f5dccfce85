/**
 * From neutral events to the OpenAI API.
 * Shape: OpenAI API reference, "The chat completion object" and "The chat completion chunk object".
 */
import type { Answer, FinishReason, TokenUsage } from '../../engine/events.ts'
import type { Generation } from '../../generate.ts'
import { dataFrame } from '../../http/streams.ts'
import type { ChatCompletionRequest } from './schema.ts'

/** A whole answer. */
export function completion(generation: Generation, answer: Answer): object {
  return {
    ...head(generation, 'chat.completion'),
    system_fingerprint: answer.fingerprint,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: answer.text, refusal: null },
        logprobs: null,
        finish_reason: finishReasons[answer.reason],
      },
    ],
    usage: toUsage(answer.usage),
  }
}

/** The frames of a streamed answer. */
export async function* chunks(generation: Generation, body: ChatCompletionRequest): AsyncGenerator<string> {
  const withUsage = body.stream_options?.include_usage ?? false
  const common = head(generation, 'chat.completion.chunk')
  let opening = ''
  const tail = withUsage ? ',"usage":null}' : '}'
  const chunk = (delta: string, finish: string): string =>
    dataFrame(
      `${opening},"choices":[{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${finish}}]${tail}`,
    )

  for await (const event of generation) {
    switch (event.type) {
      case 'start':
        // Prepared once: serialising whole chunks costs more than the tokens in them.
        opening = JSON.stringify({ ...common, system_fingerprint: event.fingerprint }).slice(0, -1)
        yield chunk('{"role":"assistant","content":"","refusal":null}', 'null')
        break
      case 'text':
        yield chunk(`{"content":${JSON.stringify(event.text)}}`, 'null')
        break
      case 'end':
        yield chunk('{}', JSON.stringify(finishReasons[event.reason]))
        if (withUsage)
          yield dataFrame(`${opening},"choices":[],"usage":${JSON.stringify(toUsage(event.usage))}}`)
        yield dataFrame('[DONE]')
    }
  }
}

const head = ({ id, model, createdAt }: Generation, object: string) => ({
  id: `chatcmpl-${id}`,
  object,
  created: Math.floor(createdAt.getTime() / 1000),
  model,
})

const finishReasons = {
  stop: 'stop',
  length: 'length',
  context: 'length',
  'tool-calls': 'tool_calls',
} as const satisfies Record<FinishReason, string>

const toUsage = ({ inputTokens, reusedTokens, outputTokens }: TokenUsage) => ({
  prompt_tokens: inputTokens,
  completion_tokens: outputTokens,
  total_tokens: inputTokens + outputTokens,
  prompt_tokens_details: { cached_tokens: reusedTokens, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: 0,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
})
