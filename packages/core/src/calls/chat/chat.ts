/** `llm.chat()`: text, structured output and tools in one call, without HTTP. */
import { setMaxListeners } from 'node:events'
import type { GenerateRequest } from '../../engine/request.ts'
import { isSignal } from '../check-fields.ts'
import type { AdmittedWork, CallerClient, ModelOptional } from '../client.ts'
import { markMistakes } from '../mistakes.ts'
import {
  type AnyChatOptions,
  type ChatOptions,
  type PreparedChat,
  prepareChat,
  type ToolParameters,
} from './chat-options.ts'
import { ChatStream } from './chat-stream.ts'
import type { ChatPrompt } from './messages.ts'
import { withOptionName } from './option-errors.ts'
import type { OutputSchema } from './output-schema.ts'
import type { ChatPiece, ChatResultOf } from './result.ts'
import { runSteps } from './steps.ts'

/**
 * Generates an answer without HTTP. `schema` constrains it to JSON, `tools` lets the model call functions. With
 * `stream: true`, returns the pieces of the answer, and the result as `result`. Throws `LlmError`. When `signal`
 * aborts, a stream ends without an error, and the promise of a result rejects with an `AbortError`.
 */
export type Chat<Extra = unknown> = <
  Schema extends OutputSchema | undefined = undefined,
  // biome-ignore lint/complexity/noBannedTypes: no tools
  Parameters extends ToolParameters = {},
  Stream extends boolean = false,
>(
  /** A question, or a conversation. */
  input: ChatPrompt,
  options?: ChatOptions<Schema, Parameters, Stream> & Extra,
) => ChatAnswer<Schema, Parameters, Stream>

/** A stream with `stream: true`, else the promise of a result. */
export type ChatAnswer<Schema, Parameters, Stream> = Stream extends true
  ? ChatStream<ChatPiece<Schema>, ChatResultOf<Schema, Parameters>>
  : Promise<ChatResultOf<Schema, Parameters>>

/**
 * @param clientFor returns the client of a caller. Throws an `LlmError` for an invalid caller.
 * @param omitted options that this method does not have
 */
export function createChat(
  clientFor: (options: Pick<ChatOptions, 'caller'>) => Pick<CallerClient, 'beginWork'>,
  omitted: readonly string[] = [],
): Chat {
  const chat = (input: unknown, given: unknown = {}): unknown => {
    const { stream, signal } = Object(given) as AnyChatOptions
    const answer = new ChatStream(
      async function* (signal) {
        try {
          const prepared = await prepareChat(input, given, omitted)
          return yield* generate(prepared, clientFor(prepared.options).beginWork(), signal)
        } catch (cause) {
          throw markMistakes(cause)
        }
      },
      isSignal(signal) ? signal : undefined,
    )
    return stream === true ? answer : answer.result
  }
  return chat as Chat
}

async function* generate(
  prepared: PreparedChat,
  work: AdmittedWork,
  signal: AbortSignal,
): ReturnType<typeof runSteps> {
  const { endUser, stream = false } = prepared.options
  // A shutdown ends the answer that is being generated itself, so that its reader first gets what exists.
  const ended = AbortSignal.any([signal, work.stopped])
  setMaxListeners(0, ended)
  try {
    const startAnswer = (request: ModelOptional<GenerateRequest>) =>
      work.generate(request, { signal, stream, endUser })
    return yield* runSteps(prepared, startAnswer, ended, work.onToolEnd)
  } catch (cause) {
    throw withOptionName(cause, prepared.tools)
  } finally {
    work.leave()
  }
}
