/** Translates the options of a call of the SDK to a `GenerateRequest`. */
import type { LanguageModelV3CallOptions, SharedV3Warning } from '@ai-sdk/provider'
import type { ChatInput, GenerateRequest, OutputFormat, Tool } from '@modelmount/core/engine'
import { toMessages } from './messages.ts'
import {
  type CallerOptions,
  invalidOption,
  type LanguageModelOptions,
  languageModelKeys,
  readCache,
  readOptions,
} from './provider-options.ts'

/** Version 7 of the SDK adds an effort of reasoning. */
export interface LanguageModelCallOptions extends LanguageModelV3CallOptions {
  readonly reasoning?: 'provider-default' | 'none' | (string & {})
}

export interface GenerateCall {
  readonly request: GenerateRequest
  readonly callerOptions: CallerOptions
  /** Settings that have no effect. */
  readonly warnings: SharedV3Warning[]
}

/**
 * Throws an `UnsupportedFunctionalityError` for files, and an `InvalidArgumentError` for unknown or conflicting
 * options of the provider.
 */
export function toGenerateCall(model: string, options: LanguageModelCallOptions): GenerateCall {
  const own = readOptions<LanguageModelOptions>(options.providerOptions, languageModelKeys)
  const { endUser, background, ...generateOptions } = own
  const { reasoning, overflow, logprobs, load, grammar, ...inputOptions } = generateOptions
  const { parallelToolCalls, templateOptions, ...sampling } = inputOptions
  const { maxOutputTokens, stopSequences = [] } = options
  const tools = toTools(options, parallelToolCalls)
  const format = toFormat(options.responseFormat, grammar)
  const request: GenerateRequest = {
    model,
    input: {
      kind: 'chat',
      messages: toMessages(options.prompt),
      ...tools,
      ...toTemplateOptions(options.reasoning, templateOptions),
    },
    reasoning: reasoning ?? toReasoning(options.reasoning),
    sampling: { ...sampling, ...toSampling(options) },
    ...(maxOutputTokens !== undefined && { maxTokens: maxOutputTokens }),
    ...(stopSequences.length > 0 && { stop: stopSequences }),
    // If a tool call is forced, the answer has no text that could have a format.
    ...(format && tools.toolChoice?.mode !== 'required' && { format }),
    ...(overflow && { overflow }),
    ...(logprobs !== undefined && { logprobs }),
    ...(load && { load }),
  }
  return { request, callerOptions: { endUser, background }, warnings: toWarnings(options) }
}

/** By default, the model decides, and its reasoning is separated from the text. */
const toReasoning = (
  effort: LanguageModelCallOptions['reasoning'],
): NonNullable<GenerateRequest['reasoning']> =>
  effort === undefined || effort === 'provider-default' ? 'auto' : effort !== 'none'

function toTemplateOptions(
  effort: LanguageModelCallOptions['reasoning'],
  variables: LanguageModelOptions['templateOptions'],
): Pick<ChatInput, 'templateOptions'> {
  const hasEffort = effort !== undefined && effort !== 'provider-default' && effort !== 'none'
  if (!hasEffort && !variables) return {}
  // The name of the variable in the templates of gpt-oss and others.
  return { templateOptions: { ...(hasEffort && { reasoning_effort: effort }), ...variables } }
}

function toSampling({
  temperature,
  topP,
  topK,
  seed,
  presencePenalty,
  frequencyPenalty,
}: LanguageModelV3CallOptions): NonNullable<GenerateRequest['sampling']> {
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(topK !== undefined && { topK }),
    ...(seed !== undefined && { seed }),
    ...(presencePenalty !== undefined && { presencePenalty }),
    ...(frequencyPenalty !== undefined && { frequencyPenalty }),
  }
}

function toFormat(
  format: LanguageModelV3CallOptions['responseFormat'],
  grammar: string | undefined,
): OutputFormat | undefined {
  const isJson = format?.type === 'json'
  if (grammar !== undefined) {
    if (isJson)
      throw invalidOption('grammar', 'cannot be combined with a JSON response format. Remove one of them.')
    return { type: 'grammar', source: grammar }
  }
  if (!isJson) return undefined
  return format.schema ? { type: 'json-schema', schema: format.schema } : { type: 'json' }
}

function toTools(
  { tools = [], toolChoice }: LanguageModelV3CallOptions,
  parallelToolCalls: boolean | undefined,
): Pick<ChatInput, 'tools' | 'toolChoice'> {
  const functions = tools.filter(isFunction)
  if (functions.length === 0) return {}
  const mode = toolChoice?.type === 'tool' ? 'required' : (toolChoice?.type ?? 'auto')
  return {
    tools: functions.map(toTool),
    toolChoice: {
      mode,
      ...(toolChoice?.type === 'tool' && { names: [toolChoice.toolName] }),
      ...(parallelToolCalls === false && { parallel: false }),
    },
  }
}

type SdkTool = NonNullable<LanguageModelV3CallOptions['tools']>[number]
type FunctionTool = Extract<SdkTool, { type: 'function' }>
const isFunction = (tool: SdkTool): tool is FunctionTool => tool.type === 'function'

const toTool = ({ name, description, inputSchema, strict, providerOptions }: FunctionTool): Tool => ({
  name,
  ...(description !== undefined && { description }),
  parameters: inputSchema,
  ...(strict !== undefined && { strict }),
  ...readCache(providerOptions),
})

const toWarnings = ({ tools = [] }: LanguageModelV3CallOptions): SharedV3Warning[] =>
  tools.flatMap((tool): SharedV3Warning[] => {
    if (!isFunction(tool))
      return [{ type: 'unsupported', feature: `the tool ${tool.id}`, details: 'Its provider executes it.' }]
    if (tool.inputExamples?.length)
      return [{ type: 'unsupported', feature: `inputExamples of the tool ${tool.name}` }]
    return []
  })
