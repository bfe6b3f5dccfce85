/** Translates a request to `POST /v1/chat/completions`. */
import type { ChatInput, GenerateRequest, Message, TextInput, Tool } from '../../request.ts'
import { callableTools, isContinuable, toTemplateMessages } from '../../request-input.ts'
import { unsupportedByUpstream } from '../upstream-errors.ts'
import { toOpenAiMessages } from './messages.ts'
import { limitOf, toCommonFields } from './sampling-fields.ts'
import type { ServerFeatures } from './server-kind.ts'

export function toChatRequest(
  request: GenerateRequest,
  input: ChatInput,
  features: ServerFeatures,
  tenant: string | undefined,
): object {
  const { logprobs } = request
  const limit = limitOf(request)
  return {
    ...toCommonFields(request, features, tenant),
    ...(limit !== undefined && { [features.maxTokensField]: limit }),
    ...toPromptFields(request, input, features),
    ...toToolChoice(input),
    ...(logprobs !== undefined && { logprobs: true, top_logprobs: logprobs }),
  }
}

/** The fields that become the prompt. They are also those of the routes that count or render a prompt. */
export function toPromptFields(
  { reasoning }: Pick<GenerateRequest, 'reasoning'>,
  { messages, template, templateOptions, promptEnd, ...input }: ChatInput,
  features: ServerFeatures,
): object {
  if (template !== undefined) throw unsupportedByUpstream('another template', 'template')
  const variables = {
    ...templateOptions,
    ...(typeof reasoning === 'boolean' && { enable_thinking: reasoning }),
  }
  return {
    messages: toOpenAiMessages(messages),
    ...toTools({ messages, ...input }),
    ...toPromptEnd(promptEnd, messages, features),
    ...(Object.keys(variables).length > 0 && toTemplateFields(variables, features)),
  }
}

/** A text with the template of the model is a chat. */
export function toChat(input: ChatInput | TextInput): ChatInput {
  if (input.kind === 'chat') return input
  const { template, templateOptions, prompt } = input
  if (template !== undefined) throw unsupportedByUpstream('another template', 'template')
  if (prompt.some((piece) => typeof piece !== 'string'))
    throw unsupportedByUpstream('token ids in a prompt with a template', 'prompt')
  return { kind: 'chat', messages: toTemplateMessages(input), ...(templateOptions && { templateOptions }) }
}

/** The tools that the prompt contains. */
function listedTools(input: ChatInput): readonly Tool[] {
  return input.toolChoice?.mode === 'none' ? (input.tools ?? []) : callableTools(input)
}

function toTools(input: ChatInput): object {
  const tools = listedTools(input)
  if (tools.length === 0) return {}
  return {
    tools: tools.map(({ name, description, parameters, strict }) => ({
      type: 'function',
      function: {
        ...{ name, parameters },
        ...(description !== undefined && { description }),
        ...(strict && { strict }),
      },
    })),
  }
}

function toToolChoice(input: ChatInput): object {
  if (!input.toolChoice || listedTools(input).length === 0) return {}
  const { mode, names, parallel } = input.toolChoice
  const [name] = names ?? []
  const isNamed = mode === 'required' && names?.length === 1
  return {
    ...(mode !== 'auto' && { tool_choice: isNamed ? { type: 'function', function: { name } } : mode }),
    ...(parallel === false && { parallel_tool_calls: false }),
  }
}

function toPromptEnd(
  promptEnd: ChatInput['promptEnd'],
  messages: readonly Message[],
  { hasTemplateFields }: ServerFeatures,
): object {
  const end = promptEnd ?? (isContinuable(messages) ? 'continue' : 'generation-prompt')
  if (end === 'generation-prompt') {
    // Without these fields, a server may continue the last message.
    return promptEnd && isContinuable(messages) && hasTemplateFields
      ? { add_generation_prompt: true, continue_final_message: false }
      : {}
  }
  if (!hasTemplateFields) throw unsupportedByUpstream('a prompt that ends with an open message', 'promptEnd')
  return { add_generation_prompt: false, continue_final_message: end === 'continue' }
}

function toTemplateFields(variables: Readonly<Record<string, unknown>>, features: ServerFeatures): object {
  if (features.hasTemplateFields) return { chat_template_kwargs: variables }
  const { reasoning_effort: effort, enable_thinking: isThinking, ...others } = variables
  const [name] = Object.keys(others)
  if (name !== undefined) throw unsupportedByUpstream(`the template option ${name}`, 'templateOptions')
  const reasoning = effort ?? (isThinking === false ? 'none' : undefined)
  return reasoning === undefined ? {} : { reasoning_effort: reasoning }
}
