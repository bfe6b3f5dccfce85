/** The options of `llm.chat()`, and their checks. */
import type { Caller } from '../../accounts/auth/caller.ts'
import type { GenerationProgress } from '../../engine/events.ts'
import type { Sampling, ToolChoice } from '../../engine/request.ts'
import { invalidRequest } from '../../errors.ts'
import {
  checkFields,
  checkSignal,
  checkType,
  expected,
  expectRecord,
  type FieldNames,
  omitFields,
} from '../check-fields.ts'
import { samplingFields } from '../request-fields.ts'
import { type ChatMessage, parsePrompt } from './messages.ts'
import { type OutputSchema, type ResolvedSchema, resolveSchema } from './output-schema.ts'
import type { ChatStep } from './result.ts'
import { type ChatTool, type ResolvedTools, resolveTools } from './tools.ts'

/** The schemas of the arguments of each tool, by the name of the tool. */
export type ToolParameters = Readonly<Record<string, unknown>>

/**
 * Options of `llm.chat()`. Sampling options that are not set come from the Modelfile, then from their defaults.
 */
export interface ChatOptions<
  Schema extends OutputSchema | undefined = undefined,
  // biome-ignore lint/complexity/noBannedTypes: no tools
  Parameters extends ToolParameters = {},
  Stream extends boolean = false,
> extends Sampling {
  /**
   * Name of the model.
   *
   * @default the app's own model if it has exactly one, or the built-in model if it has none
   */
  readonly model?: string | undefined
  /** System message before the conversation. @default that of the Modelfile, else none */
  readonly system?: string | undefined
  /**
   * Maximum number of generated tokens of each step. From 0.
   *
   * @default that of the Modelfile, else as many as fit into the context
   */
  readonly maxTokens?: number | undefined
  /** Stop sequences. The text does not include them. @default those of the Modelfile */
  readonly stop?: readonly string[] | undefined
  /** Turns reasoning on or off. @default 'auto': as the model's template has it */
  readonly reasoning?: boolean | 'auto' | undefined
  /**
   * Constrains the answer to JSON of this schema. The result has it as `object`.
   *
   * @default none: the answer is text
   */
  readonly schema?: Schema | undefined
  /** Tools that the model can call, by name. @default none */
  readonly tools?: { readonly [Name in keyof Parameters]: ChatTool<Parameters[Name]> } | undefined
  /** `required` and `{ tool }` force a call in the first step only. @default 'auto' */
  readonly toolChoice?: ChatToolChoice<keyof NoInfer<Parameters> & string> | undefined
  /** Whether one answer can have several calls. @default true */
  readonly parallelToolCalls?: boolean | undefined
  /** Maximum number of answers. The calls of the last one are returned. From 1 to 1,000. @default 10 */
  readonly maxSteps?: number | undefined
  /** Called after each answer and its tool calls. The next step waits for it. @default none */
  readonly onStep?: ((step: ChatStep) => unknown) | undefined
  /**
   * Called while the model loads and while it evaluates a prompt, in each step. The call rejects with what it throws.
   *
   * @default none
   */
  readonly onProgress?: ((progress: GenerationProgress) => void) | undefined
  /** Whether to return the pieces of the answer while it is generated. @default false */
  readonly stream?: Stream | undefined
  /** Cancels the answer and running tools. @default the call runs to its end */
  readonly signal?: AbortSignal | undefined
  /** Limits and spending are counted for this caller, each step as a call. @default none: the app itself */
  readonly caller?: Caller | undefined
  /** Id of the end user behind the caller, for the limits `perEndUser` of the caller. @default none */
  readonly endUser?: string | undefined
}

/**
 * Which tools the model may or must call: any or none (`auto`), none, at least one (`required`), or the named one.
 */
export type ChatToolChoice<Name extends string = string> =
  | 'auto'
  | 'none'
  | 'required'
  | { readonly tool: Name }

/** Options of any kind of call. */
export type AnyChatOptions = ChatOptions<OutputSchema | undefined, ToolParameters, boolean>

/** The checked options of one call. */
export interface PreparedChat {
  readonly messages: readonly ChatMessage[]
  readonly options: AnyChatOptions
  readonly sampling: Sampling
  readonly schema: ResolvedSchema | undefined
  readonly tools: ResolvedTools
  /** Applies to the first step. */
  readonly toolChoice: ToolChoice
  readonly maxSteps: number
}

const defaultMaxSteps = 10
const maxSteps = 1_000

const chatFields: FieldNames<AnyChatOptions> = {
  ...samplingFields,
  ...{ model: true, system: true, maxTokens: true, stop: true, reasoning: true, schema: true, tools: true },
  ...{ toolChoice: true, parallelToolCalls: true, maxSteps: true, onStep: true, stream: true, signal: true },
  ...{ onProgress: true, caller: true, endUser: true },
}

/** Names of other APIs. */
const hints = {
  ...{
    format: 'schema',
    response_format: 'schema',
    responseFormat: 'schema',
    jsonSchema: 'schema',
    output: 'schema',
  },
  ...{ max_completion_tokens: 'maxTokens', maxOutputTokens: 'maxTokens', num_predict: 'maxTokens' },
  ...{ stopSequences: 'stop', stop_sequences: 'stop', abortSignal: 'signal', user: 'endUser' },
  ...{ think: 'reasoning', thinking: 'reasoning', functions: 'tools', function_call: 'toolChoice' },
  ...{ instructions: 'system', systemPrompt: 'system', onStepFinish: 'onStep', stopWhen: 'maxSteps' },
  ...{ messages: 'llm.chat(messages, options)', prompt: 'llm.chat(prompt, options)' },
}

/** Throws an `LlmError` `invalid_request` that names the option. The engine checks numbers and lengths. */
export async function prepareChat(
  input: unknown,
  given: unknown,
  omitted: readonly string[],
): Promise<PreparedChat> {
  const options: AnyChatOptions = expectRecord(given, 'options', 'an object')
  checkFields(options, omitFields(chatFields, omitted), { kind: 'option of chat()', hints })
  checkTypes(options)
  const tools = await resolveTools(options.tools)
  return {
    messages: parsePrompt(input),
    options,
    sampling: pickSampling(options),
    schema: options.schema === undefined ? undefined : await resolveSchema(options.schema, 'schema'),
    tools,
    toolChoice: toToolChoice(options, tools),
    maxSteps: options.maxSteps ?? defaultMaxSteps,
  }
}

function checkTypes(options: AnyChatOptions): void {
  for (const name of ['model', 'system', 'endUser'] as const) checkType(options[name], name, 'string')
  for (const name of ['stream', 'parallelToolCalls'] as const) checkType(options[name], name, 'boolean')
  for (const name of ['onStep', 'onProgress'] as const) checkType(options[name], name, 'function')
  checkSignal(options.signal)
  const { reasoning, stop, maxTokens, maxSteps: steps } = options
  if (reasoning !== undefined && typeof reasoning !== 'boolean' && reasoning !== 'auto')
    throw expected('reasoning', "true, false or 'auto'", reasoning)
  if (stop !== undefined && !(Array.isArray(stop) && stop.every((one) => typeof one === 'string')))
    throw expected('stop', 'a list of strings', stop)
  if (maxTokens !== undefined && !(Number.isInteger(maxTokens) && maxTokens >= 0))
    throw expected('maxTokens', 'an integer from 0 up', maxTokens)
  if (steps !== undefined && !(Number.isInteger(steps) && steps >= 1 && steps <= maxSteps))
    throw expected('maxSteps', `an integer from 1 to ${maxSteps}`, steps)
}

const pickSampling = (options: AnyChatOptions): Sampling =>
  Object.fromEntries(
    Object.entries(options).filter(
      ([name, value]) => Object.hasOwn(samplingFields, name) && value !== undefined,
    ),
  )

function toToolChoice(
  { toolChoice = 'auto', parallelToolCalls = true }: AnyChatOptions,
  tools: ResolvedTools,
): ToolChoice {
  const parallel = parallelToolCalls ? {} : ({ parallel: false } as const)
  if (toolChoice === 'auto' || toolChoice === 'none') return { mode: toolChoice, ...parallel }
  if (tools.size === 0 && toolChoice === 'required')
    throw invalidRequest("toolChoice: 'required' needs the option tools.", {
      param: 'toolChoice',
      issue: 'value',
    })
  if (toolChoice === 'required') return { mode: 'required', ...parallel }
  const { tool } = Object(toolChoice) as { readonly tool?: unknown }
  if (typeof tool !== 'string')
    throw expected('toolChoice', "'auto', 'none', 'required' or { tool: name }", toolChoice)
  if (!tools.has(tool)) throw expected('toolChoice.tool', `the name of one of the tools`, tool)
  return { mode: 'required', names: [tool], ...parallel }
}
