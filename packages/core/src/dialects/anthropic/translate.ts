/** Translates requests of the Anthropic API to engine requests. */

import { mergeTurns } from '../../engine/merge-turns.ts'
import type { CacheLifetime, ChatInput, GenerateRequest, Message, Part, Tool } from '../../engine/request.ts'
import { omitUndefined } from '../fields.ts'
import * as blocks from './blocks.ts'
import { findLastCandidate } from './breakpoints.ts'
import * as schema from './schema.ts'
import type * as tools from './tools.ts'

export function toGenerateRequest(body: schema.MessagesRequest): GenerateRequest {
  const { temperature, top_p: topP, top_k: topK, stop_sequences: stop = [] } = body
  const prompt = toPrompt(body)
  // If a tool call is forced, the answer has no text that could have a format.
  const format = isForced(prompt.input) ? undefined : schema.formatOf(body)
  return {
    ...prompt,
    maxTokens: body.max_tokens,
    ...(stop.length > 0 && { stop }),
    sampling: omitUndefined({ temperature, topP, topK: topK || undefined }),
    defaultSampling: { temperature: 1, topP: 1 },
    ...(format && { format: { type: 'json-schema', schema: format.schema } }),
  }
}

const isForced = ({ toolChoice }: ChatInput): boolean => toolChoice?.mode === 'required'

/** Translates all fields that affect the prompt. Without `thinking`, disables reasoning if possible. */
export function toPrompt(
  body: schema.CountTokensRequest,
): Pick<GenerateRequest, 'model' | 'reasoning'> & { readonly input: ChatInput } {
  const { model, system, messages, cache_control, thinking: { type: thinking = 'disabled' } = {} } = body
  const effort = thinking === 'disabled' ? undefined : body.output_config?.effort
  const systemBlocks = blocks.blocksOf(system).filter((block) => !isBilling(block))
  const turns = [
    {
      role: 'system',
      content: systemBlocks.map((block) => toPart(block, 'system')).filter((part) => !isEmpty(part)),
    },
    ...withResultsFirst(messages.flatMap((message, at) => toTurns(message, `messages[${at}].content`))),
  ]
  const input: ChatInput = { kind: 'chat', messages: turns, ...toTools(body) }
  const isMarked = findLastCandidate(schema.listBreakpointCandidates(body))?.block.cache_control !== undefined
  const markedInput = cache_control && !isMarked ? withBreakpoint(input, cache_control) : input
  return {
    model,
    input: {
      ...markedInput,
      messages: mergeTurns(markedInput.messages),
      ...(effort && { templateOptions: { reasoning_effort: effort } }),
    },
    reasoning: thinking === 'disabled' ? false : thinking === 'enabled' ? true : 'auto',
  }
}

function toTools({
  tools: defined = [],
  tool_choice: choice,
}: schema.CountTokensRequest): Pick<ChatInput, 'tools' | 'toolChoice'> {
  if (defined.length === 0) return {}
  return {
    tools: defined.map(({ name, description, input_schema: parameters, strict, cache_control: cache }) => ({
      name,
      ...(description !== undefined && { description }),
      parameters,
      ...(strict && { strict }),
      ...(cache && { cache }),
    })),
    ...(choice && { toolChoice: toToolChoice(choice) }),
  }
}

function toToolChoice(choice: tools.AnthropicToolChoice): NonNullable<ChatInput['toolChoice']> {
  if (choice.type === 'none') return { mode: 'none' }
  return {
    mode: choice.type === 'auto' ? 'auto' : 'required',
    ...(choice.type === 'tool' && { names: [choice.name] }),
    ...(choice.disable_parallel_tool_use && { parallel: false }),
  }
}

/** Adds a breakpoint to the last part of the prompt that can have a breakpoint. */
function withBreakpoint({ tools = [], messages, ...input }: ChatInput, cache: CacheLifetime): ChatInput {
  const all: readonly (Part | Tool)[] = [...tools, ...messages.flatMap(({ content }) => content)]
  const last = all.findLast((one) => !('type' in one && one.type === 'reasoning'))
  const mark = <One extends Part | Tool>(one: One): One => (one === last ? { cache, ...one } : one)
  return {
    ...input,
    ...(tools.length > 0 && { tools: tools.map(mark) }),
    messages: messages.map((turn) => ({ ...turn, content: turn.content.map(mark) })),
  }
}

/** Moves the tool results of a message to a separate turn before the rest of the message. */
function toTurns({ role, content }: blocks.AnthropicMessage, path: string): readonly Message[] {
  const parts = blocks.blocksOf(content).map((block, at) => toPart(block, `${path}[${at}]`))
  const results = parts.filter(isResult)
  const others = parts.filter((part) => !isResult(part) && !isEmpty(part))
  // A message that contains only reasoning is dropped.
  const hasContent =
    others.some(({ type }) => type !== 'reasoning') || (role === 'user' && results.length === 0)
  return [
    ...(results.length > 0 ? [{ role: 'tool', content: results }] : []),
    ...(hasContent ? [{ role, content: others }] : []),
  ]
}

/** Moves tool results directly after their tool calls, since many chat templates expect that. */
function withResultsFirst(turns: readonly Message[]): readonly Message[] {
  const ordered: Message[] = []
  const isCalling = ({ role }: Message): boolean => role === 'assistant' || role === 'tool'
  for (const turn of turns) {
    const before = turn.role === 'tool' ? ordered.findLastIndex(isCalling) : ordered.length - 1
    ordered.splice(before + 1, 0, turn)
  }
  return ordered
}

/** @param path path of the block in the request */
function toPart(block: blocks.Block, path: string): Part {
  const cache = block.cache_control && { cache: block.cache_control }
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text, ...cache }
    case 'image': {
      const { mediaType, data, url } = block
      return {
        type: 'image',
        mediaType,
        data,
        ...(url !== undefined && { url }),
        param: `${path}.image`,
        ...cache,
      }
    }
    case 'thinking':
      return { type: 'reasoning', text: block.thinking }
    case 'tool_use':
      return {
        type: 'tool-call',
        id: block.id,
        name: block.name,
        arguments: JSON.stringify(block.input),
        ...cache,
      }
    case 'tool_result':
      return {
        type: 'tool-result',
        id: block.tool_use_id,
        content: blocks.blocksOf(block.content).map((inner, at) => toPart(inner, `${path}.content[${at}]`)),
        ...(block.is_error && { isError: true }),
        ...cache,
      }
  }
}

const isResult = ({ type }: Part): boolean => type === 'tool-result'
const isEmpty = (part: Part): boolean => 'text' in part && part.text === ''

/** Whether a block is Claude Code's billing marker. Its changing text would invalidate the prompt cache. */
const isBilling = (block: blocks.Block): boolean =>
  block.type === 'text' && block.text.startsWith('x-anthropic-billing-header:')
