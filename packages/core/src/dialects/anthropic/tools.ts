/** Tools and tool choice. Shape: Anthropic API reference, "Create a Message", `tools` and `tool_choice`. */
import { z } from 'zod'
import { limits } from '../../engine/request-limits.ts'
import { JsonObject, optional, truncateForError } from '../fields.ts'
import { list } from '../parse.ts'
import { breakpoint } from './breakpoints.ts'
import { clientTools } from './client-tools.ts'

const name = '^[a-zA-Z0-9_-]{1,128}$'
const CustomTool = z.object({
  kind: z.literal('custom'),
  name: z.string().regex(new RegExp(name), `String should match pattern '${name}'`),
  description: optional(z.string()),
  input_schema: JsonObject.superRefine(({ type }, context) => {
    if (type === 'object') return
    const issue = type === undefined ? 'missing' : 'value'
    context.addIssue({
      code: 'custom',
      path: ['type'],
      params: { issue },
      message: "Input should be 'object'",
    })
  }),
  strict: optional(z.boolean()),
  ...breakpoint,
})
const SkippedTool = z.object({ kind: z.literal('skipped'), ...breakpoint })

/**
 * Whether tools of this type are unavailable here. Anthropic hosts them, or models need special training to
 * use them.
 */
const isHosted = (type: string): boolean =>
  /^(web_search|web_fetch|code_execution|advisor|mcp_toolset|computer|browser)(_|$)/.test(type)
/** Whether a tool searches for deferred tools. It is skipped, since the prompt contains all tools anyway. */
const isToolSearch = (type: string): boolean => /^tool_search_tool_(regex|bm25)(_\d+)?$/.test(type)

/** Clients send the schemas of `custom` tools. Anthropic's API defines the schemas of all other tools. */
const AnthropicTool = z
  .looseObject({ type: optional(z.string()) })
  .superRefine(({ type = 'custom', name }, context) => {
    const clientTool = clientTools.get(type)
    if (clientTool && name !== clientTool.name)
      context.addIssue({ code: 'custom', path: ['name'], message: `Input should be '${clientTool.name}'` })
    if (clientTool || type === 'custom' || isToolSearch(type)) return
    const tag = truncateForError(type)
    const expected = ['custom', ...clientTools.keys()].map((known) => `'${known}'`).join(', ')
    context.addIssue(
      isHosted(type)
        ? {
            code: 'custom',
            path: ['type'],
            params: { issue: 'unsupported' },
            message: `A tool of the type '${tag}' is not supported.`,
          }
        : {
            code: 'custom',
            message: `Input tag '${tag}' found using 'type' does not match any of the expected tags: ${expected}`,
          },
    )
  })
  .transform(({ type = 'custom', ...tool }) => {
    const clientTool = clientTools.get(type)
    const { cache_control } = tool
    return {
      ...(clientTool ? { ...clientTool, cache_control } : tool),
      kind: isToolSearch(type) ? 'skipped' : 'custom',
    }
  })
  .pipe(z.discriminatedUnion('kind', [CustomTool, SkippedTool]))

export const Tools = list(AnthropicTool, { max: limits.tools })
  .transform(dropSkippedTools)
  .refine(
    (tools) => new Set(tools.map(({ name }) => name)).size === tools.length,
    'Tool names must be unique.',
  )
export type AnthropicTool = Omit<z.output<typeof CustomTool>, 'kind'>

/** Removes skipped tools. Moves the breakpoint of a skipped tool to the tool before it. */
function dropSkippedTools(tools: readonly z.output<typeof AnthropicTool>[]): readonly AnthropicTool[] {
  const callableTools: AnthropicTool[] = []
  for (const tool of tools) {
    const last = callableTools.at(-1)
    if (tool.kind === 'custom') {
      const { kind, ...custom } = tool
      callableTools.push(custom)
    } else if (last)
      callableTools.splice(-1, 1, { ...last, cache_control: last.cache_control ?? tool.cache_control })
  }
  return callableTools
}

const parallel = { disable_parallel_tool_use: optional(z.boolean()) }
export const AnthropicToolChoice = z.discriminatedUnion(
  'type',
  [
    z.object({ type: z.enum(['auto', 'any']), ...parallel }),
    z.object({ type: z.literal('tool'), name: z.string(), ...parallel }),
    z.object({ type: z.literal('none') }),
  ],
  { error: "Input should be 'auto', 'any', 'tool' or 'none'" },
)
export type AnthropicToolChoice = z.output<typeof AnthropicToolChoice>
