/** Translates requests of the OpenAI API to engine requests. */
import type { GenerateRequest, Sampling } from '../../engine/request.ts'
import { invalidRequest } from '../../errors.ts'
import { toProgressOptions } from '../answer-progress.ts'
import { omitUndefined } from '../fields.ts'
import { repeatRequest } from './choices.ts'
import { toPromptEnd } from './extensions/prompt-end.ts'
import { toLocalSampling } from './extensions/sampling-fields.ts'
import { type FormatNames, toFormat } from './formats.ts'
import { toMessages } from './messages.ts'
import {
  answersPerPrompt,
  type ChatCompletionRequest,
  type CompletionRequest,
  type GenerationFields,
} from './schema.ts'
import { toTools } from './tools.ts'

export const completionFormatNames: FormatNames = {
  format: 'response_format',
  schema: 'response_format.json_schema.schema',
}

/** OpenAI's default for text completions, if neither the request nor the model sets a limit. */
const defaultMaxTokens = 16

/** Throws the errors of `toMessages`, `toPromptEnd` and `toTools`. */
export function toGenerateRequest(body: ChatCompletionRequest): GenerateRequest {
  const maxTokens = toLimit(body, body.max_completion_tokens ?? body.max_tokens)
  const messages = toMessages(body.messages)
  const tools = toTools(body)
  const format = toFormat(
    { ...body, format: body.response_format },
    completionFormatNames,
    tools.toolChoice?.mode,
  )
  return {
    ...toCommon(body),
    input: {
      kind: 'chat',
      messages,
      ...toPromptEnd(body, messages),
      ...tools,
      ...toTemplateOptions(body),
    },
    ...toReasoning(body),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(format && { format }),
    ...(body.logprobs && { logprobs: body.top_logprobs ?? 0 }),
  }
}

/**
 * Translates each prompt to requests, one for each answer. Throws `invalid_request` for fields that cannot be combined.
 */
export function toTextRequests(body: CompletionRequest): readonly GenerateRequest[] {
  const { max_tokens, logprobs } = body
  const maxTokens = body.n_predict ?? max_tokens
  const promptLogprobs = body.echo && logprobs !== undefined
  if (promptLogprobs && body.suffix)
    throw invalidRequest("'echo' and 'logprobs' together with a 'suffix' are not supported.", {
      param: 'echo',
      issue: 'unsupported',
    })
  const format = toFormat({ ...body, format: body.response_format }, completionFormatNames)
  // The best answers are those with the highest logprobs.
  const hasChoice = answersPerPrompt(body) > (body.n ?? 1)
  const reported = logprobs ?? (hasChoice ? 0 : undefined)
  return body.prompt.flatMap((prompt) =>
    repeatRequest(
      {
        ...toCommon(body),
        input: toTextInput(prompt, body),
        ...(maxTokens === undefined ? { defaultMaxTokens } : maxTokens >= 0 && { maxTokens }),
        ...(format && { format }),
        ...(reported !== undefined && { logprobs: reported }),
        ...(promptLogprobs && { promptLogprobs }),
      },
      answersPerPrompt(body),
    ),
  )
}

function toTextInput(
  prompt: CompletionRequest['prompt'][number],
  { suffix }: CompletionRequest,
): GenerateRequest['input'] {
  if (!suffix) return { kind: 'text', prompt, template: false }
  if (prompt.every((piece) => typeof piece === 'string'))
    return { kind: 'infill', prefix: prompt.join(''), suffix }
  throw invalidRequest("With a 'suffix', the 'prompt' has to be text.", { param: 'prompt', issue: 'type' })
}

export function toCommon(
  body: GenerationFields,
): Pick<GenerateRequest, 'model' | 'stop' | 'sampling' | 'returnProgress' | 'returnTimings'> {
  const stop = (typeof body.stop === 'string' ? [body.stop] : (body.stop ?? [])).filter((text) => text !== '')
  return {
    model: body.model,
    ...(stop.length > 0 && { stop }),
    sampling: toSampling(body),
    ...toProgressOptions(body, body.stream ?? false),
  }
}

/** Returns the limit of output tokens, if there is one. */
export const toLimit = (
  { n_predict: other }: GenerationFields,
  own: number | undefined,
): number | undefined => (other === undefined ? own : other >= 0 ? other : undefined)

/** Returns the id of the client's end user. */
export const endUserOf = ({
  user,
  safety_identifier,
}: Pick<GenerationFields, 'user' | 'safety_identifier'>): string | undefined => safety_identifier || user

type ReasoningFields = Pick<
  ChatCompletionRequest,
  'reasoning_effort' | 'chat_template_kwargs' | 'enable_thinking' | 'reasoning_format'
>

/**
 * Whether the model reasons. Without a setting, the model decides (`auto`). Throws `invalid_request` for a setting
 * together with reasoning in the text, which the engine does not control.
 */
export function toReasoning({
  reasoning_effort: effort,
  chat_template_kwargs: variables,
  enable_thinking: requested,
  reasoning_format: format,
}: ReasoningFields): Pick<GenerateRequest, 'reasoning'> {
  const isEnabled = effort ? effort !== 'none' : (variables?.enable_thinking ?? requested)
  if (format !== 'none') return { reasoning: typeof isEnabled === 'boolean' ? isEnabled : 'auto' }
  if (isEnabled === undefined) return {}
  throw invalidRequest(
    "Invalid 'reasoning_format': 'none' cannot be combined with a field that turns reasoning on or off.",
    { param: 'reasoning_format', issue: 'value' },
  )
}

export function toTemplateOptions({
  reasoning_effort: effort,
  chat_template_kwargs: variables,
}: ReasoningFields): {
  templateOptions?: Readonly<Record<string, unknown>>
} {
  const effortOption = effort && effort !== 'none' ? { reasoning_effort: effort } : undefined
  return variables || effortOption ? { templateOptions: { ...variables, ...effortOption } } : {}
}

function toSampling(body: GenerationFields): Sampling {
  return omitUndefined({
    ...toLocalSampling(body),
    temperature: body.temperature ?? 1,
    topP: body.top_p ?? 1,
    topK: body.top_k,
    minP: body.min_p,
    seed: body.seed,
    presencePenalty: body.presence_penalty,
    frequencyPenalty: body.frequency_penalty,
    logitBias: body.logit_bias,
  })
}
