/**
 * Request schemas. Unknown fields are ignored. Fields about accounts and context editing are also ignored,
 * since they do not change the response here. Fields that are not implemented and would change the response
 * are rejected, and the error names the field.
 * Shape: Anthropic API reference, "Create a Message" and "Count tokens in a Message".
 */
import { z } from 'zod'
import { limits } from '../../engine/request-limits.ts'
import {
  integerFrom,
  isEmpty,
  JsonObject,
  optional,
  StopSequence,
  truncateForError,
  unsupportedUnless,
} from '../fields.ts'
import { list } from '../parse.ts'
import { AnthropicMessage, blocksOf, SystemContent } from './blocks.ts'
import { type BreakpointCandidate, breakpoint, checkBreakpoints } from './breakpoints.ts'
import { AnthropicToolChoice, Tools } from './tools.ts'
import { checkTurns } from './turns.ts'

/** `omitted` shows only the signature of reasoning. Every other value shows the reasoning. */
const display = optional(z.string())
const Thinking = z.discriminatedUnion(
  'type',
  [
    z.object({ type: z.literal('enabled'), budget_tokens: integerFrom(1), display }),
    // Clients send `adaptive` to models that they do not know.
    z.object({ type: z.enum(['adaptive', 'between_tools']), display }),
    z.object({ type: z.literal('disabled') }),
  ],
  { error: "Input should be 'enabled', 'adaptive' or 'disabled'" },
)

/** Reasoning effort. Values that newer clients may know are ignored. */
const Effort = optional(z.enum(['low', 'medium', 'high', 'xhigh', 'max'])).catch(undefined)

const Format = z.object({
  type: z.literal('json_schema', { error: "Input should be 'json_schema'" }),
  schema: JsonObject,
})

/** Fields for messages and token counting: the prompt and the output constraints. */
const prompt = {
  model: z.string().min(1, 'String should have at least 1 character').max(limits.modelLength),
  messages: list(AnthropicMessage, { max: limits.messages }).refine((messages) => messages.length > 0, {
    params: { issue: 'empty' },
    error: 'at least one message is required',
  }),
  system: optional(SystemContent),

  tools: optional(Tools),
  tool_choice: optional(AnthropicToolChoice),
  thinking: optional(Thinking),
  output_config: optional(z.object({ format: optional(Format), effort: Effort })),
  /** Deprecated name of `output_config.format`. */
  output_format: optional(Format),
  /** Request-level breakpoint, after the last block. */
  ...breakpoint,

  mcp_servers: unsupportedUnless(z.array(z.unknown()), '`mcp_servers`', isEmpty),
  /** Rejected, since clients that continue a thread send only its new messages. */
  thread: unsupportedUnless(z.looseObject({}), 'A thread stored on the server', () => false),
  container: unsupportedUnless(z.union([z.string(), z.looseObject({})]), 'A container', () => false),
}

const createReporter =
  ({ addIssue }: z.RefinementCtx) =>
  (path: readonly (string | number)[], message: string): void =>
    addIssue({ code: 'custom', path: [...path], message })

/** Checks that the fields of a body do not contradict each other. */
function checkPrompt(body: Prompt, context: z.RefinementCtx): void {
  const report = createReporter(context)
  const { messages, tools = [], tool_choice: choice } = body
  checkTurns(messages, report)
  if (choice && choice.type !== 'none' && tools.length === 0)
    report(['tool_choice'], 'tool_choice may only be specified while providing tools')
  else if (choice?.type === 'tool' && !tools.some(({ name }) => name === choice.name))
    report(['tool_choice', 'name'], `Tool '${truncateForError(choice.name)}' not found in provided tools`)
  checkBreakpoints(listBreakpointCandidates(body), body.cache_control, report)
  const conflict = findPrefillConflict(body)
  if (conflict !== undefined && isPrefilled(messages))
    report(
      ['messages'],
      `Assistant message prefill is not supported with ${conflict}. The conversation must end with a user message.`,
    )
}

/** Lists blocks and tools in the order of the prompt. */
export const listBreakpointCandidates = ({
  tools = [],
  system,
  messages,
}: Prompt): readonly BreakpointCandidate[] => [
  ...tools.map((block, at) => ({ path: ['tools', at], block })),
  ...blocksOf(system).map((block, at) => ({ path: ['system', at], block })),
  ...messages.flatMap(({ content }, at) =>
    blocksOf(content).map((block, index) => ({ path: ['messages', at, 'content', index], block })),
  ),
]

const isForced = (choice: Prompt['tool_choice']): boolean => choice?.type === 'any' || choice?.type === 'tool'

/** Finds a setting that determines how the answer begins. It conflicts with a final assistant message. */
function findPrefillConflict({ tool_choice: choice, thinking, ...body }: Prompt): string | undefined {
  if (isForced(choice)) return 'a forced tool'
  if (thinking?.type === 'enabled') return 'thinking'
  return formatOf(body) && 'an output format'
}

function isPrefilled(messages: readonly AnthropicMessage[]): boolean {
  const last = messages.at(-1)
  return (
    last?.role === 'assistant' &&
    blocksOf(last.content).some((block) => block.type === 'text' && block.text !== '')
  )
}

export const formatOf = (body: Pick<Prompt, 'output_config' | 'output_format'>) =>
  body.output_config?.format ?? body.output_format

const Prompt = z.object(prompt)
type Prompt = z.output<typeof Prompt>

export const CountTokensRequest = Prompt.superRefine(checkPrompt)
export type CountTokensRequest = Prompt

export const MessagesRequest = z
  .object({
    ...prompt,
    /** With 0, the prompt is only evaluated and cached, for the next request. */
    max_tokens: integerFrom(0),
    stream: optional(z.boolean()),
    metadata: optional(z.object({ user_id: optional(z.string()) })),
    stop_sequences: optional(
      list(StopSequence, { max: limits.stops }).refine(
        (texts) => texts.every((text) => text.trim() !== ''),
        'each stop sequence must contain non-whitespace',
      ),
    ),
    temperature: optional(z.number().min(0).max(1)),
    top_p: optional(z.number().min(0).max(1)),
    top_k: optional(integerFrom(0, limits.int32)),
  })
  .superRefine(checkPrompt)
  .superRefine((body, context) => {
    const conflict = body.max_tokens === 0 ? findZeroTokensConflict(body) : undefined
    if (conflict !== undefined)
      createReporter(context)(
        ['max_tokens'],
        `0 only caches the prompt, so it cannot be combined with ${conflict}.`,
      )
  })
  .refine(
    ({ max_tokens: maxTokens, thinking }) =>
      thinking?.type !== 'enabled' || thinking.budget_tokens < maxTokens,
    {
      path: ['max_tokens'],
      error: '`max_tokens` must be greater than `thinking.budget_tokens`',
    },
  )
export type MessagesRequest = z.output<typeof MessagesRequest>

/** Finds a setting that needs output, and so conflicts with `max_tokens: 0`. */
function findZeroTokensConflict({
  stream,
  tool_choice: choice,
  ...body
}: Prompt & { readonly stream?: boolean | undefined }): string | undefined {
  if (stream) return '`stream`'
  if (isForced(choice)) return 'a forced tool'
  return formatOf(body) && 'an output format'
}
