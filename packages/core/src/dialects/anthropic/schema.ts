/**
 * Request shapes. Unknown fields are ignored, and so are those about caching, accounts and context editing,
 * which change no answer here; what would change it and is not built yet is refused by name.
 * Shape: Anthropic API reference, "Create a Message" and "Count tokens in a Message".
 */
import { z } from 'zod'
import { limits } from '../../engine/request.ts'
import {
  isEmpty,
  JsonObject,
  notYet,
  optional,
  StopSequence,
  shortly,
  unsupported,
  whole,
} from '../fields.ts'
import { list } from '../parse.ts'
import { blocksOf, Message, SystemContent } from './blocks.ts'
import { ToolChoice, Tools } from './tools.ts'
import { checkTurns } from './turns.ts'

/** `omitted`: of thoughts only the signature is shown. What else the API has, or will have, shows them. */
const display = optional(z.string())
const Thinking = z.discriminatedUnion(
  'type',
  [
    z.object({ type: z.literal('enabled'), budget_tokens: whole(1), display }),
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
  messages: list(Message, { max: limits.messages }).refine((messages) => messages.length > 0, {
    params: { issue: 'empty' },
    error: 'at least one message is required',
  }),
  system: optional(SystemContent),

  tools: optional(Tools),
  tool_choice: optional(ToolChoice),
  thinking: optional(Thinking),
  output_config: optional(z.object({ format: optional(Format) })),
  /** Its older name. */
  output_format: optional(Format),

  mcp_servers: notYet(z.array(z.unknown()), '`mcp_servers`', isEmpty),
  /** Who continues one sends the new messages alone: taken for all, they would be another conversation. */
  thread: notYet(z.looseObject({}), 'A thread that the server keeps', () => false),
  container: notYet(z.union([z.string(), z.looseObject({})]), 'A container', () => false),
}

/** What fields must not say together. */
function checkPrompt(body: Prompt, { addIssue }: z.RefinementCtx): void {
  const report = (path: readonly (string | number)[], message: string): void =>
    addIssue({ code: 'custom', path: [...path], message })
  const { messages, tools = [], tool_choice: choice } = body
  checkTurns(messages, report)
  if (choice && choice.type !== 'none' && tools.length === 0)
    report(['tool_choice'], 'tool_choice may only be specified while providing tools')
  else if (choice?.type === 'tool' && !tools.some(({ name }) => name === choice.name))
    report(['tool_choice', 'name'], `Tool '${shortly(choice.name)}' not found in provided tools`)
  const instead = insteadOfPrefill(body)
  if (instead !== undefined && isPrefilled(messages))
    report(
      ['messages'],
      `Assistant message prefill is not supported with ${instead}. The conversation must end with a user message.`,
    )
}

/** What an answer begins with, so that it cannot begin with words of the caller. */
function insteadOfPrefill({ tool_choice: choice, thinking, ...body }: Prompt): string | undefined {
  if (choice?.type === 'any' || choice?.type === 'tool') return 'a forced tool'
  if (thinking?.type === 'enabled') return 'thinking'
  return formatOf(body) && 'an output format'
}

function isPrefilled(messages: readonly Message[]): boolean {
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
    max_tokens: whole(0).refine((value) => value !== 0, unsupported('Filling a cache with `max_tokens` 0')),
    stream: optional(z.boolean()),
    stop_sequences: optional(
      list(StopSequence, { max: limits.stops }).refine(
        (texts) => texts.every((text) => text.trim() !== ''),
        'each stop sequence must contain non-whitespace',
      ),
    ),
    temperature: optional(z.number().min(0).max(1)),
    top_p: optional(z.number().min(0).max(1)),
    top_k: optional(whole(0, limits.int32)),
  })
  .superRefine(checkPrompt)
  .refine(({ max_tokens: most, thinking }) => thinking?.type !== 'enabled' || thinking.budget_tokens < most, {
    path: ['max_tokens'],
    error: '`max_tokens` must be greater than `thinking.budget_tokens`',
  })
export type MessagesRequest = z.output<typeof MessagesRequest>
