/**
 * Tools and tool choice. Tools that OpenAI hosts or defines are skipped: coding agents always list such
 * tools, and work without them.
 * Shape: OpenAI API reference, "Create a model response", `tools` and `tool_choice`.
 */
import { z } from 'zod'
import type * as neutral from '../../../engine/request.ts'
import { limits } from '../../../engine/request-limits.ts'
import { optional, unsupported } from '../../fields.ts'
import { list } from '../../parse.ts'
import {
  createToolChoiceSchema,
  createToolFields,
  type FunctionChoice,
  FunctionFields,
  toToolInput,
} from '../tools.ts'

/** Whether OpenAI hosts or defines a type of tool. Some type names end in a date. */
const isHosted = (type: string): boolean =>
  /^(web_search|file_search|code_interpreter|computer|image_generation|mcp|local_shell|shell|apply_patch|tool_search|namespace|programmatic_tool_calling)(_|$)/.test(
    type,
  )

const ResponsesTool = z
  .looseObject({ type: z.string() })
  .transform((tool) => (isHosted(tool.type) ? { type: 'hosted' } : tool))
  .pipe(
    z.discriminatedUnion(
      'type',
      [
        FunctionFields.extend({ type: z.literal('function') }),
        z.object({ type: z.literal('hosted') }),
        z
          .object({ type: z.literal('custom') })
          .refine(() => false, { path: ['type'], ...unsupported('A custom tool') })
          .transform((): never => z.NEVER),
      ],
      { error: "expected a tool of the type 'function'." },
    ),
  )
type ResponsesTool = z.output<typeof ResponsesTool>

const allowed = ['function', 'allowed_tools']
const ResponsesToolChoice = createToolChoiceSchema(
  z
    .looseObject({ type: z.string() })
    .refine(({ type }) => allowed.includes(type), {
      path: ['type'],
      ...unsupported('A tool that is no function'),
    })
    .pipe(
      z.discriminatedUnion('type', [
        z.object({ type: z.literal('function'), name: z.string() }),
        z.object({
          type: z.literal('allowed_tools'),
          mode: z.enum(['auto', 'required']),
          tools: list(z.object({ type: z.string(), name: optional(z.string()) }), {
            min: 1,
            max: limits.tools,
          }),
        }),
      ]),
    ),
)
type ResponsesToolChoice = z.output<typeof ResponsesToolChoice>

export const toolFields = createToolFields(ResponsesTool, ResponsesToolChoice)
type ResponsesToolFields = z.output<z.ZodObject<typeof toolFields>>

/** Throws the errors of `toToolInput`. */
export function toTools({
  tools = [],
  tool_choice: choice = 'auto',
  parallel_tool_calls: parallel,
}: ResponsesToolFields): Pick<neutral.ChatInput, 'tools' | 'toolChoice'> {
  const functions = tools.flatMap((tool, index) =>
    tool.type === 'function' ? [[`tools[${index}]`, tool] as const] : [],
  )
  return toToolInput(functions, toChoice(choice), parallel)
}

function toChoice(choice: ResponsesToolChoice): FunctionChoice {
  if (typeof choice === 'string') return { mode: choice }
  if (choice.type === 'function') return { mode: 'required', names: [choice.name] }
  return {
    mode: choice.mode,
    names: choice.tools.flatMap(({ type, name }) => (type === 'function' && name) || []),
  }
}

/** Renders the function tools of the request, which the response repeats. */
export const renderTools = (tools: readonly ResponsesTool[] = []): readonly object[] =>
  tools.flatMap((tool) => {
    if (tool.type !== 'function') return []
    const { type, name, description = null, parameters = null, strict = null } = tool
    return [{ type, name, description, parameters, strict }]
  })
