/** Tools and tool choice. Shape: OpenAI API reference, "Create chat completion". */
import { z } from 'zod'
import type * as neutral from '../../engine/request.ts'
import { limits } from '../../engine/request-limits.ts'
import { invalidRequest } from '../../errors.ts'
import { optional, truncateForError, unsupported } from '../fields.ts'
import { list } from '../parse.ts'
import { FunctionType } from './messages.ts'

export const FunctionFields = z.object({
  name: z.string().min(1).max(limits.toolNameLength),
  description: optional(z.string()),
  parameters: optional(z.looseObject({})),
  strict: optional(z.boolean()),
})
export type FunctionFields = z.output<typeof FunctionFields>

const Tool = z.object({ type: FunctionType, function: FunctionFields })

/** Schema of `tool_choice` for chat completions and responses. @param named schema of a choice by name */
export const createToolChoiceSchema = <Named extends z.ZodType>(named: Named) =>
  z.union([z.enum(['none', 'auto', 'required']), named], {
    error: "expected 'none', 'auto', 'required' or an object.",
  })

/** Tool fields for chat completions and responses. */
export const createToolFields = <One extends z.ZodType, Choice extends z.ZodType>(
  tool: One,
  choice: Choice,
) => ({
  tools: optional(list(tool, { max: limits.tools })),
  tool_choice: optional(choice),
  parallel_tool_calls: optional(z.boolean()),
})

const NamedTool = z.object({ type: z.literal('function'), function: z.object({ name: z.string() }) })
const FunctionToolChoice = createToolChoiceSchema(
  z.discriminatedUnion('type', [
    NamedTool,
    z.object({
      type: z.literal('allowed_tools'),
      allowed_tools: z.object({
        mode: z.enum(['auto', 'required']),
        tools: list(NamedTool, { min: 1, max: limits.tools }),
      }),
    }),
    z
      .object({ type: z.literal('custom') })
      .refine(() => false, { path: ['type'], ...unsupported('A custom tool') })
      .transform((): never => z.NEVER),
  ]),
)
type FunctionToolChoice = z.output<typeof FunctionToolChoice>

export const toolFields = createToolFields(Tool, FunctionToolChoice)
type ChatToolFields = z.output<z.ZodObject<typeof toolFields>>

/** Schema of functions without `parameters`. By OpenAI's default, they have no arguments. */
const noParameters = { type: 'object', properties: {}, additionalProperties: false } as const

/** Throws the errors of `toToolInput`. */
export function toTools({
  tools = [],
  tool_choice: choice = 'auto',
  parallel_tool_calls: parallel,
}: ChatToolFields): ToolInput {
  const functions = tools.map((tool, index) => [`tools[${index}].function`, tool.function] as const)
  return toToolInput(functions, toChoice(choice), parallel)
}

type ToolInput = Pick<neutral.ChatInput, 'tools' | 'toolChoice'>

/**
 * Translates functions and the tool choice. Throws `invalid_request` for a duplicate name, for a choice of a
 * function that is not listed, and if a tool call is required but no function is listed.
 *
 * @param functions each with the path of its field, for error messages
 */
export function toToolInput(
  functions: readonly (readonly [field: string, FunctionFields])[],
  { mode, names }: FunctionChoice,
  parallel = true,
): ToolInput {
  const known = collectNames(functions)
  const unknown = names?.find((name) => !known.has(name))
  if (unknown !== undefined)
    throw wrongChoice(`there is no function '${truncateForError(unknown)}' among the tools.`)
  if (functions.length === 0 && mode === 'required')
    throw wrongChoice('a tool call is required, but there are no tools.')
  if (functions.length === 0) return {}
  return {
    tools: functions.map(([, fields]) => toTool(fields)),
    toolChoice: { mode, ...(names && { names }), ...(!parallel && { parallel }) },
  }
}

function collectNames(functions: Parameters<typeof toToolInput>[0]): ReadonlySet<string> {
  const names = new Set<string>()
  for (const [field, { name }] of functions) {
    const param = `${field}.name`
    if (names.has(name))
      throw invalidRequest(`Invalid '${param}': another tool has this name.`, { param, issue: 'value' })
    names.add(name)
  }
  return names
}

export type FunctionChoice = Pick<neutral.ToolChoice, 'mode' | 'names'>

function toChoice(choice: FunctionToolChoice): FunctionChoice {
  if (typeof choice === 'string') return { mode: choice }
  if (choice.type === 'function') return { mode: 'required', names: [choice.function.name] }
  const { mode, tools } = choice.allowed_tools
  return { mode, names: tools.map(({ function: { name } }) => name) }
}

const toTool = ({ name, description, parameters = noParameters, strict }: FunctionFields): neutral.Tool => ({
  name,
  ...(description !== undefined && { description }),
  parameters,
  ...(strict !== undefined && { strict }),
})

const wrongChoice = (reason: string) =>
  invalidRequest(`Invalid 'tool_choice': ${reason}`, { param: 'tool_choice', issue: 'value' })
