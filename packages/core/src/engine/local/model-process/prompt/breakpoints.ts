/**
 * Locates the breakpoints of a conversation in its prompt. A template may reorder the messages, and tokens
 * depend on the text after them. So a second conversation is rendered, which is the same up to the
 * breakpoint. The breakpoint is where the two prompts begin to differ.
 */
import type { Token } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import type { CacheLifetime, ChatInput, GenerateRequest, Message, Part, Tool } from '../../../request.ts'
import type { Breakpoint } from '../kv-cache/cache-plan.ts'
import { commonPrefixLength } from '../kv-cache/slots.ts'
import type { RunContext } from '../run-context.ts'
import { tokenizeInput } from './prompt.ts'

/**
 * Finds the token positions of cache breakpoints, ascending and unique. A breakpoint inside a token moves to
 * the start of that token. Omits breakpoints that cannot be located, for example because the template rejects
 * the changed conversation.
 */
export async function findBreakpoints(
  request: GenerateRequest,
  prompt: readonly Token[],
  context: RunContext,
): Promise<readonly Breakpoint[]> {
  const { input } = request
  if (input.kind !== 'chat' || request.promptLogprobs) return []
  /** Number of leading tokens that the prompt shares with the prompt of another input. */
  const countShared = async (other: ChatInput): Promise<number> => {
    context.progress.steps++
    const tokens = await tokenizeInput(request, other, context).catch(noneIfRejected)
    return Math.min(commonPrefixLength(prompt, tokens), prompt.length - 1)
  }
  const found = new Map<number, CacheLifetime>()
  for (const { lifetime, other, behindSystem } of createProbes(input)) {
    if (context.signal.aborted) break
    let length = await countShared(other)
    if (behindSystem && length <= (await countShared(behindSystem.start)))
      length = await countShared(behindSystem.other)
    if (length > 0 && found.get(length) !== '1h') found.set(length, lifetime)
  }
  return [...found].map(([length, lifetime]) => ({ length, lifetime })).sort((a, b) => a.length - b.length)
}

interface BreakpointProbe {
  readonly lifetime: CacheLifetime
  /** Input that is the same up to the breakpoint, and differs after it. */
  readonly other: ChatInput
  /**
   * Inputs for templates that write tools after the system message. `start` is the same up to the tool, and
   * `other` up to the breakpoint after the tool.
   */
  readonly behindSystem?: Readonly<Record<'start' | 'other', ChatInput>>
}

function createProbes(input: ChatInput): readonly BreakpointProbe[] {
  const { tools = [], messages } = input
  const inTools = tools.flatMap(({ cache: lifetime }, at) => {
    if (!lifetime) return []
    const from = (index: number) => [...tools.slice(0, index), ...tools.slice(index).map(varyTool)]
    const turns = messages.map((message) => (message.role === 'system' ? message : varyMessage(message)))
    return [
      {
        lifetime,
        other: { ...input, tools: from(at + 1), messages: messages.map(varyMessage) },
        behindSystem: {
          start: { ...input, tools: from(at) },
          other: { ...input, tools: from(at + 1), messages: turns },
        },
      },
    ]
  })
  const inMessages = messages.flatMap((message, at) =>
    message.content.flatMap(({ cache: lifetime }, index) =>
      lifetime ? [{ lifetime, other: { ...input, messages: varyFrom(messages, at, index) } }] : [],
    ),
  )
  return [...inTools, ...inMessages]
}

/**
 * Changes a conversation after the breakpoint of part `index` in message `at`: adds a text to the end of this
 * part. If the part is a tool call or in a leading system message, changes the start of all later parts
 * instead, if there are any.
 */
function varyFrom(messages: readonly Message[], at: number, index: number): readonly Message[] {
  const { role, content } = messages[at] as Message
  const [before, part, after] = [content.slice(0, index), content[index] as Part, content.slice(index + 1)]
  // Tools come before the system message in requests, but after it in many templates.
  const isFront = role === 'system' && messages.slice(0, at).every((one) => one.role === 'system')
  const isLast = after.length === 0 && at === messages.length - 1
  const other = isLast || !(isFront || part.type === 'tool-call') ? varyEnd(part) : undefined
  return [
    ...messages.slice(0, at),
    { role, content: other ? [...before, other, ...after] : [...before, part, ...after.map(varyStart)] },
    ...(other ? messages.slice(at + 1) : messages.slice(at + 1).map(varyMessage)),
  ]
}

/** A private-use character, which conversations rarely contain. */
const probeText = '\uE001'

function varyEnd(part: Part): Part {
  if (part.type === 'tool-call') return { ...part, name: part.name + probeText }
  if (part.type === 'tool-result')
    return { ...part, content: [...part.content, { type: 'text', text: probeText }] }
  return { ...part, text: part.text + probeText }
}

function varyStart(part: Part): Part {
  if (part.type === 'tool-call') return { ...part, name: probeText + part.name }
  if (part.type === 'tool-result')
    return { ...part, content: [{ type: 'text', text: probeText }, ...part.content] }
  return { ...part, text: probeText + part.text }
}

const varyMessage = ({ role, content }: Message): Message => ({ role, content: content.map(varyStart) })

const varyTool = (tool: Tool): Tool => ({ ...tool, name: probeText + tool.name })

/** A template may reject the changed input. Then no shared prefix is known. */
function noneIfRejected(cause: unknown): readonly Token[] {
  if (LlmError.from(cause).code === 'invalid_request') return []
  throw cause
}
