/** The tools of `llm.chat()`: their definitions for the model, and their execution. */
import type { Tool } from '../../engine/request.ts'
import { raceAbort } from '../../util/abort.ts'
import { checkFields, checkType, expected, expectRecord, type FieldNames } from '../check-fields.ts'
import type { JsonSchema } from './json-schema.ts'
import type { ChatMessage, ChatToolCall, ToolMessage } from './messages.ts'
import { describeIssues, type OutputSchema, type ResolvedSchema, resolveSchema } from './output-schema.ts'
import type { InferOutput, StandardSchema } from './standard-schema.ts'
import { toResultText } from './tool-result.ts'

/** A tool that the model can call. Its name is its key in the option `tools`. */
export interface ChatTool<Parameters = OutputSchema> {
  /** Tells the model what the tool does, and when to call it. */
  readonly description?: string
  /** Schema of the arguments, which are an object. @default no arguments */
  readonly parameters?: Parameters & (Parameters extends OutputSchema ? unknown : never)
  /**
   * Whether to reject a JSON Schema that cannot be enforced. Otherwise, such a tool accepts any object.
   * @default false
   */
  readonly strict?: boolean
  /**
   * Runs a call. The model reads the result, as JSON unless it is a string. An error that is thrown here is handed to
   * the model as the result.
   * @default none: the call is returned
   */
  execute?(args: ToolArguments<Parameters>, context: ToolContext): ToolOutput | Promise<ToolOutput>
}

/**
 * Gives `execute` the types of its arguments when a tool is not written in the call of `llm.chat()`. Returns the tool as
 * it is.
 */
export const tool = <Parameters>(tool: ChatTool<Parameters>): ChatTool<Parameters> => tool

/** Arguments that `execute` gets. Those of a Standard Schema are validated. */
export type ToolArguments<Parameters> = Parameters extends StandardSchema
  ? InferOutput<Parameters>
  : Readonly<Record<string, unknown>>

/** A text, or a value that JSON can represent. */
export type ToolOutput = string | number | boolean | object | null

/** What `execute` of a tool gets besides the arguments. */
export interface ToolContext {
  /** Aborts when the call of `llm.chat()` is cancelled, and at the deadline of `llm.close({ drain })`. */
  readonly signal: AbortSignal
  /** Id of the tool call, unique in the conversation. */
  readonly toolCallId: string
  /** The conversation up to the message with this call. */
  readonly messages: readonly ChatMessage[]
}

export interface ResolvedTool {
  readonly definition: Tool
  readonly schema: ResolvedSchema
  readonly execute: ((args: never, context: ToolContext) => unknown) | undefined
}

/** @param error what the tool has thrown. Undefined if it has succeeded */
export type OnToolEnd = (tool: ResolvedTool, toolCallId: string, durationMs: number, error: unknown) => void

export type ResolvedTools = ReadonlyMap<string, ResolvedTool>

const toolFields: FieldNames<ChatTool> = { description: true, parameters: true, strict: true, execute: true }

/** Names of other APIs. */
const hints = {
  ...{ inputSchema: 'parameters', input_schema: 'parameters', schema: 'parameters', arguments: 'parameters' },
  ...{ handler: 'execute', run: 'execute', call: 'execute', function: 'execute' },
}

export async function resolveTools(tools: unknown): Promise<ResolvedTools> {
  if (tools === undefined) return new Map()
  const given = expectRecord(
    tools,
    'tools',
    'an object, such as { weather: { description, parameters, execute } }',
  )
  return new Map(
    await Promise.all(
      Object.entries(given).map(async ([name, tool]) => [name, await resolveTool(name, tool)] as const),
    ),
  )
}

async function resolveTool(name: string, value: unknown): Promise<ResolvedTool> {
  const at = `tools.${name}`
  const tool = expectRecord(value, at, 'a tool, such as { description, parameters, execute }')
  checkFields(tool, toolFields, { at, kind: 'field of a tool', hints })
  const { description, parameters = noParameters, strict, execute } = tool as ChatTool
  checkType(description, `${at}.description`, 'string')
  checkType(strict, `${at}.strict`, 'boolean')
  checkType(execute, `${at}.execute`, 'function')
  const schema = await resolveSchema(parameters, `${at}.parameters`)
  if (!acceptsObjects(schema.json))
    throw expected(`${at}.parameters`, 'the schema of an object', Object(schema.json).type ?? schema.json)
  const definition = {
    name,
    ...(description !== undefined && { description }),
    parameters: schema.json,
    ...(strict !== undefined && { strict }),
  }
  return { definition, schema, execute: execute?.bind(tool) }
}

/** A schema without `type` may accept objects: the engine knows. */
const acceptsObjects = (json: JsonSchema): json is Exclude<JsonSchema, boolean> =>
  typeof json === 'object' && (json.type === undefined || [json.type].flat().includes('object'))

const noParameters = { type: 'object', properties: {}, additionalProperties: false } as const

/**
 * Runs the calls of one answer at the same time, except those of tools without `execute`. Throws the signal's reason as
 * soon as it aborts, even if a tool runs on.
 *
 * @param messages the conversation up to the message with the calls
 */
export async function runToolCalls(
  calls: readonly ChatToolCall[],
  tools: ResolvedTools,
  messages: readonly ChatMessage[],
  { signal, onToolEnd }: { readonly signal: AbortSignal; readonly onToolEnd: OnToolEnd },
): Promise<readonly ToolMessage[]> {
  const results = calls.map((call) => {
    const tool = tools.get(call.name)
    if (tool && !tool.execute) return []
    return runCall(call, tool, [...tools.keys()], { signal, toolCallId: call.id, messages }, onToolEnd)
  })
  return (await raceAbort(Promise.all(results), signal)).flat()
}

/** Rejects only if the tool returns a value that JSON cannot represent, which no model can correct. */
async function runCall(
  { id: toolCallId, name, arguments: given }: ChatToolCall,
  tool: ResolvedTool | undefined,
  names: readonly string[],
  context: ToolContext,
  onToolEnd: OnToolEnd,
): Promise<ToolMessage> {
  const fail = (content: string): ToolMessage => ({ role: 'tool', toolCallId, content, isError: true })
  if (!tool?.execute) return fail(`There is no tool '${name}'. The tools are: ${names.join(', ')}.`)
  let output: unknown
  let startedAt: number | undefined
  const end = (error?: unknown): void => {
    if (startedAt !== undefined) onToolEnd(tool, toolCallId, performance.now() - startedAt, error)
  }
  try {
    const args = await tool.schema.validate(given)
    if (args.issues) return fail(`Invalid arguments. ${describeIssues(args.issues)}`)
    startedAt = performance.now()
    output = await tool.execute(args.value as never, context)
    end()
  } catch (cause) {
    end(cause)
    return fail(cause instanceof Error ? cause.message : String(cause))
  }
  return { role: 'tool', toolCallId, content: toResultText(output, `tools.${name}.execute`) }
}
