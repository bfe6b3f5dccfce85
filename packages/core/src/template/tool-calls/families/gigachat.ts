/**
 * Tool calls of GigaChat: JSON in a message of the role `function call`. Since version 3.1, a special token
 * takes the place of the role.
 */
import { parseCallObjects } from '../call-objects.ts'
import { parseMarkedCalls } from '../parse-calls.ts'
import type { ToolCallParser } from '../parser-context.ts'

const endOfMessage = '<|message_sep|>'

export const gigachat: ToolCallParser = (context) =>
  parseMarkedCalls([endOfMessage, '<|function_call|>'], context, function* (mark) {
    const { input } = context
    yield* input.skipBlanks()
    if (mark === endOfMessage && !(yield* input.tryTake('function call<|role_sep|>'))) return false
    return yield* parseCallObjects(context, true)
  })
