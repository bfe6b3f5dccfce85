/**
 * Tools and tool choice. Tools that OpenAI hosts or defines are skipped: coding agents always list such
 * tools, and work without them.
 * Shape: OpenAI API reference, "Create a model response", `tools` and `tool_choice`.
 */
import { z } from 'zod'
import type * as neutral from '../../../engine/request.ts'
import { limits } from '../../../engine/request-limits.ts'
import { invalidRequest } from '../../../errors.ts'
import { optional, unsupported } from '../../fields.ts'
import { list } from '../../parse.ts'
import {
  createToolChoiceSchema,
  createToolFields,
  type FunctionChoice,
  FunctionFields,
  toToolInput,
} from '../tools.ts'
import { larkToPattern } from './lark/lark-pattern.ts'
import { LarkError } from './lark/tokens.ts'
import { textArgument } from './text-argument.ts'

/** Whether OpenAI hosts or defines a type of tool. Some type names end in a date. */
const isHosted = (type: string): boolean =>
  /^(web_search|file_search|code_interpreter|computer|image_generation|mcp|local_shell|shell|apply_patch|tool_search|programmatic_tool_calling)(_|$)/.test(
    type,
  )

const FunctionTool = FunctionFields.extend({ type: z.literal('function') })
/** A tool whose argument is one text. */
const CustomTool = z.object({
  type: z.literal('custom'),
  name: z.string().min(1).max(limits.toolNameLength),
  description: optional(z.string()),
  format: optional(
    z.discriminatedUnion(
      'type',
      [
        z.object({ type: z.literal('text') }),
        z.object({
          type: z.literal('grammar'),
          syntax: z.enum(['lark', 'regex']),
          definition: z.string().max(limits.grammarLength),
        }),
      ],
      { error: "expected an object of the type 'text' or 'grammar'." },
    ),
  ),
})
type CustomTool = z.output<typeof CustomTool>

/** Functions of a server, which the client runs. */
const NamespaceTool = z.object({
  type: z.literal('namespace'),
  name: z.string().min(1).max(limits.toolNameLength),
  description: optional(z.string()),
  tools: list(
    z.discriminatedUnion('type', [FunctionTool, CustomTool], {
      error: "expected a tool of the type 'function' or 'custom'.",
    }),
    { max: limits.tools },
  ),
})

const ResponsesTool = z
  .looseObject({ type: z.string() })
  .transform((tool) => (isHosted(tool.type) ? { type: 'hosted' } : tool))
  .pipe(
    z.discriminatedUnion(
      'type',
      [FunctionTool, CustomTool, NamespaceTool, z.object({ type: z.literal('hosted') })],
      { error: "expected a tool of the type 'function', 'custom' or 'namespace'." },
    ),
  )
type ResponsesTool = z.output<typeof ResponsesTool>

const NamedTool = z.object({
  type: z.enum(['function', 'custom']),
  name: z.string(),
  namespace: optional(z.string()),
})
const allowed = ['function', 'custom', 'allowed_tools']
const ResponsesToolChoice = createToolChoiceSchema(
  z
    .looseObject({ type: z.string() })
    .refine(({ type }) => allowed.includes(type), {
      path: ['type'],
      ...unsupported('A tool that OpenAI hosts'),
    })
    .pipe(
      z.discriminatedUnion('type', [
        NamedTool,
        z.object({
          type: z.literal('allowed_tools'),
          mode: z.enum(['auto', 'required']),
          tools: list(
            z.object({ type: z.string(), name: optional(z.string()), namespace: optional(z.string()) }),
            { min: 1, max: limits.tools },
          ),
        }),
      ]),
    ),
)
type ResponsesToolChoice = z.output<typeof ResponsesToolChoice>

export const toolFields = createToolFields(ResponsesTool, ResponsesToolChoice)
type ResponsesToolFields = z.output<z.ZodObject<typeof toolFields>>

/** A tool that the model can call. */
export interface ListedTool {
  /** Name for the model. */
  readonly modelName: string
  /** Path of the tool in the request, for error messages. */
  readonly field: string
  readonly namespace: string | undefined
  readonly tool: z.output<typeof FunctionTool> | CustomTool
}

/** Lists the tools of a request, with those in namespaces, in the order in which the engine gets them. */
export const listCallable = (tools: readonly ResponsesTool[] = []): readonly ListedTool[] =>
  tools.flatMap((tool, index): readonly ListedTool[] => {
    const field = `tools[${index}]`
    if (tool.type === 'hosted') return []
    if (tool.type !== 'namespace') return [{ modelName: tool.name, field, namespace: undefined, tool }]
    return tool.tools.map((inner, innerIndex) => ({
      modelName: toModelName(inner.name, tool.name),
      field: `${field}.tools[${innerIndex}]`,
      namespace: tool.name === defaultNamespace ? undefined : tool.name,
      tool: inner,
    }))
  })

/** The namespace of the functions of Codex itself. */
const defaultNamespace = 'functions'

/** Joins a name and its namespace. Some namespaces, such as `mcp__files__`, end with the separator. */
export function toModelName(name: string, namespace: string | undefined): string {
  if (namespace === undefined || namespace === defaultNamespace) return name
  return /_$/.test(namespace) || name.startsWith('_') ? `${namespace}${name}` : `${namespace}__${name}`
}

/** Throws the errors of `toToolInput`, and `invalid_request` for the grammar of a custom tool. */
export function toTools({
  tools,
  tool_choice: choice = 'auto',
  parallel_tool_calls: parallel,
}: ResponsesToolFields): Pick<neutral.ChatInput, 'tools' | 'toolChoice'> {
  const functions = listCallable(tools).map(
    ({ modelName, field, tool }) =>
      [
        field,
        tool.type === 'function' ? { ...tool, name: modelName } : toFunction(tool, modelName, field),
      ] as const,
  )
  return toToolInput(functions, toChoice(choice), parallel)
}

/** The model calls a custom tool as a function whose argument is the text. */
function toFunction(tool: CustomTool, name: string, field: string): FunctionFields {
  const { description = '', format = { type: 'text' } } = tool
  const grammar =
    format.type === 'text'
      ? ''
      : `\nThe text matches this ${grammarNames[format.syntax]}:\n${format.definition}`
  return {
    name,
    description: `${description}\nPass the whole text as the argument \`${textArgument}\`.${grammar}`.trim(),
    parameters: {
      type: 'object',
      properties: {
        [textArgument]: {
          type: 'string',
          ...(format.type === 'grammar' && { pattern: toPattern(format, field) }),
        },
      },
      required: [textArgument],
      additionalProperties: false,
    },
    // A grammar that cannot be enforced is an error.
    strict: format.type === 'grammar' ? true : undefined,
  }
}

const grammarNames = { lark: 'Lark grammar', regex: 'regular expression' } as const

function toPattern(
  { syntax, definition }: Extract<CustomTool['format'], { type: 'grammar' }>,
  field: string,
): string {
  if (syntax === 'regex') return `^(?:${definition})$`
  try {
    return `^(?:${larkToPattern(definition)})$`
  } catch (cause) {
    if (!(cause instanceof LarkError)) throw cause
    const param = `${field}.format.definition`
    throw invalidRequest(`Invalid '${param}': ${cause.message}.`, { param, issue: 'value' })
  }
}

function toChoice(choice: ResponsesToolChoice): FunctionChoice {
  if (typeof choice === 'string') return { mode: choice }
  if (choice.type !== 'allowed_tools')
    return { mode: 'required', names: [toModelName(choice.name, choice.namespace)] }
  return {
    mode: choice.mode,
    names: choice.tools.flatMap(({ type, name, namespace }) =>
      (type === 'function' || type === 'custom') && name ? toModelName(name, namespace) : [],
    ),
  }
}

/**
 * Maps the field of an engine's error, which counts the tools that the model can call, to the field of the request.
 * The pattern of a custom tool comes from its grammar.
 */
export const mapToolField =
  (tools: readonly ListedTool[]) =>
  (param: string): string =>
    param.replace(/^tools\[(\d+)\](.*)$/, (whole, index: string, rest: string) => {
      const callable = tools[Number(index)]
      if (!callable) return whole
      const isOfGrammar = callable.tool.type === 'custom' && rest.startsWith('.parameters')
      return `${callable.field}${isOfGrammar ? '.format.definition' : rest}`
    })

/** Renders the tools of the request that are not skipped, which the response repeats. */
export const renderTools = (tools: readonly ResponsesTool[] = []): readonly object[] =>
  tools.flatMap((tool) => {
    if (tool.type === 'hosted') return []
    if (tool.type !== 'namespace') return [renderTool(tool)]
    const { type, name, description = null } = tool
    return [{ type, name, description, tools: tool.tools.map(renderTool) }]
  })

function renderTool(tool: ListedTool['tool']): object {
  const { type, name, description = null } = tool
  if (tool.type === 'custom') return { type, name, description, format: tool.format ?? { type: 'text' } }
  const { parameters = null, strict = null } = tool
  return { type, name, description, parameters, strict }
}
