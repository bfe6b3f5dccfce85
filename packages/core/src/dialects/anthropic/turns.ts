/** Checks the order of tool calls and results. Reference: Anthropic guides, "How to implement tool use". */
import { truncateForError } from '../fields.ts'
import { type AnthropicMessage, type Block, blocksOf } from './blocks.ts'

/** Reports an error in a message or block. */
type Report = (path: readonly (string | number)[], message: string) => void

/**
 * Checks that each tool call has one result, in the next turn. Consecutive messages of one role are one turn.
 * System messages belong to no turn. Stops at the first error.
 */
export function checkTurns(messages: readonly AnthropicMessage[], report: Report): void {
  let calls: TurnToolCalls = new Map()
  let lastRole: AnthropicMessage['role'] = 'user'
  for (const [at, { role, content }] of messages.entries()) {
    if (role === 'system') continue
    if (role === 'assistant' && lastRole === 'user') {
      if (reportUnanswered(calls, report)) return
      calls = new Map()
    }
    lastRole = role
    for (const [index, block] of blocksOf(content).entries()) {
      const error = checkBlock(block, at, calls)
      if (error === undefined) continue
      report(block.type === 'tool_use' ? ['messages'] : ['messages', at, 'content', index], error)
      return
    }
  }
  reportUnanswered(calls, report)
}

/** Tool calls of one turn, by id. */
type TurnToolCalls = Map<string, { readonly at: number; hasResult: boolean }>

/** Returns the error of a block, if any. */
function checkBlock(block: Block, at: number, calls: TurnToolCalls): string | undefined {
  if (block.type === 'tool_use') {
    if (calls.has(block.id)) return '`tool_use` ids must be unique'
    calls.set(block.id, { at, hasResult: false })
  } else if (block.type === 'tool_result') {
    const { tool_use_id: id } = block
    const call = calls.get(id)
    if (!call)
      return `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${truncateForError(id)}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`
    if (call.hasResult)
      return `each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${truncateForError(id)}`
    call.hasResult = true
  }
  return undefined
}

function reportUnanswered(calls: TurnToolCalls, report: Report): boolean {
  const open = [...calls].filter(([, { hasResult }]) => !hasResult)
  const [first] = open
  if (!first) return false
  const ids = open.slice(0, maxIds).map(([id]) => truncateForError(id))
  report(
    ['messages', first[1].at],
    `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
  )
  return true
}

/** Maximum number of ids in one error message. */
const maxIds = 8
