/** Translates a request to `POST /v1/chat/completions`. */
import type { ChatInput, GenerateRequest, Message, ToolChoice } from '../../request.ts'
import { callableTools, isContinuable } from '../../request-input.ts'
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
  const { logprobs, reasoning } = request
  const limit = limitOf(request)
  const { templateOptions, template } = input
  if (template !== undefined) throw unsupportedByUpstream('another template', 'template')
  const variables = {
    ...templateOptions,
    ...(typeof reasoning === 'boolean' && { enable_thinking: reasoning }),
  }
  return {
    ...toCommonFields(request, features, tenant),
    ...(limit !== undefined && { [features.maxTokensField]: limit }),
    messages: toOpenAiMessages(input.messages),
    ...toTools(input),
    ...toPromptEnd(input.promptEnd, input.messages, features),
    ...(Object.keys(variables).length > 0 && toTemplateFields(variables, features)),
    ...(logprobs !== undefined && { logprobs: true, top_logprobs: logprobs }),
  }
}

function toTools(input: ChatInput): object {
  const { toolChoice, tools: all = [] } = input
  const tools = toolChoice?.mode === 'none' ? all : callableTools(input)
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
    ...toToolChoice(toolChoice),
  }
}

function toToolChoice(choice: ToolChoice | undefined): object {
  if (!choice) return {}
  const { mode, names, parallel } = choice
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
