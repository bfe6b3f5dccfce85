/**
 * Tool calls of Mistral: a special token, then a list of JSON objects. Since 2025, models write a name, an
 * optional id and arguments instead of a list.
 */
import { parseCallObjects } from '../call-objects.ts'
import { parseCallArguments, parseMarkedCalls, parseToolName } from '../parse-calls.ts'
import type { ToolCallParser } from '../parser-context.ts'

export const mistral: ToolCallParser = (context) =>
  parseMarkedCalls(['[TOOL_CALLS]'], context, function* () {
    const { input } = context
    yield* input.skipBlanks()
    const first = yield* input.peek()
    if (first === '[' || first === '{') return yield* parseCallObjects(context, true)
    const name = yield* parseToolName(context)
    if (name === undefined) return false
    if (yield* input.tryTake('[CALL_ID]')) yield* input.takeRun(idCharacters)
    yield* input.tryTake('[ARGS]')
    return yield* parseCallArguments(name, context)
  })

const idCharacters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-'
