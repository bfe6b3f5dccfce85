/**
 * Request shapes. Unknown fields are ignored, and so are those about accounts and context editing, which change no answer
 * here; what would change it and is not built yet is refused by name.
 * Shape: Anthropic API reference, "Create a Message" and "Count tokens in a Message".
 */
import { z } from 'zod'
import { limits } from '../../engine/request.ts'
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

/** `omitted`: of thoughts only the signature is shown. What else the API has, or will have, shows them. */
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

const Format = z.object({
  type: z.literal('json_schema', { error: "Input should be 'json_schema'" }),
  schema: JsonObject,
})

/** What makes the prompt, and what is asked for with it. */
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
  output_config: optional(z.object({ format: optional(Format) })),
  /** Its older name. */
  output_format: optional(Format),
  /** Behind the last block. */
  ...breakpoint,

  mcp_servers: unsupportedUnless(z.array(z.unknown()), '`mcp_servers`', isEmpty),
  /** Who continues one sends the new messages alone: taken for all, they would be another conversation. */
  thread: unsupportedUnless(z.looseObject({}), 'A thread that the server keeps', () => false),
  container: unsupportedUnless(z.union([z.string(), z.looseObject({})]), 'A container', () => false),
}

const createReporter =
  ({ addIssue }: z.RefinementCtx) =>
  (path: readonly (string | number)[], message: string): void =>
    addIssue({ code: 'custom', path: [...path], message })

/** What fields must not say together. */
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

/** In the order of the prompt. */
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

/** What an answer begins with, so that it cannot begin with words of the caller. */
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
    /** With 0 the prompt is read, to be there for the next call. */
    max_tokens: integerFrom(0),
    stream: optional(z.boolean()),
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
        `0 reads the prompt and says nothing, so it cannot be used with ${conflict}.`,
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

/** What has to say something. */
function findZeroTokensConflict({
  stream,
  tool_choice: choice,
  ...body
}: Prompt & { readonly stream?: boolean | undefined }): string | undefined {
  if (stream) return '`stream`'
  if (isForced(choice)) return 'a forced tool'
  return formatOf(body) && 'an output format'
}
