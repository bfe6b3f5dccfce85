/** Parses calls that are JSON objects with a name and arguments. Most model families use this format. */
import type { ParseSteps } from '../input.ts'
import { copyObject, copyQuotedObject, parseOneOfStrings, skipValue } from './json.ts'
import type { ParserContext } from './parser-context.ts'

/**
 * Parses one call or a list of calls, with or without brackets and commas. Returns whether it found a call.
 * @param isMarked whether markup precedes the calls. Without markup, a call must have arguments.
 */
export function* parseCallObjects(context: ParserContext, isMarked: boolean): ParseSteps<boolean> {
  const { input, output } = context
  let hasCall = false
  for (;;) {
    yield* input.takeRun(hasCall ? ' \t\r\n,;]' : ' \t\r\n[')
    if ((yield* input.peek()) !== '{') return hasCall
    if (hasCall) input.startCapture()
    if (!(yield* parseCallObject(context, isMarked))) {
      if (hasCall) output.addText('text', input.takeCaptured())
      return hasCall
    }
    hasCall = true
  }
}

const nameKeys = ['name', 'tool_name', 'function']
const argumentKeys = ['arguments', 'parameters']
const keys = [...nameKeys, ...argumentKeys, 'type', 'id', 'index', 'tool_call_id']

/** State of a call during parsing. */
interface PartialCall {
  name?: string
  /** Arguments that preceded the name. */
  earlyArguments?: string
  state: 'unknown' | 'started' | 'complete'
}

function* parseCallObject(context: ParserContext, isMarked: boolean): ParseSteps<boolean> {
  const { input, output } = context
  const call: PartialCall = { state: 'unknown' }
  const isClosed = yield* parseMembers(context, call, false)
  if (isClosed && isMarked && call.state === 'unknown' && call.name !== undefined) {
    call.earlyArguments = '{}'
    beginCall(context, call)
  }
  if (call.state === 'started') output.markIncomplete()
  if (call.state !== 'unknown') input.dropCapture()
  return call.state !== 'unknown'
}

/**
 * Parses the members of a call object. Some models nest name and arguments in `function`, like OpenAI's API.
 * @param isInner whether the object is the value of `function`
 */
function* parseMembers(context: ParserContext, call: PartialCall, isInner: boolean): ParseSteps<boolean> {
  const { input } = context
  if (!(yield* input.tryTake('{'))) return false
  for (;;) {
    yield* input.skipBlanks()
    if (yield* input.tryTake('}')) return true
    const key = yield* parseOneOfStrings(input, keys)
    if (key === undefined) return false
    yield* input.skipBlanks()
    if (!(yield* input.tryTake(':'))) return false
    yield* input.skipBlanks()
    const isWrapped = key === 'function' && !isInner && (yield* input.peek()) === '{'
    const isParsed = isWrapped
      ? yield* parseMembers(context, call, true)
      : yield* parseMember(context, call, key)
    if (!isParsed) return false
    yield* input.skipBlanks()
    if (!(yield* input.tryTake(','))) return yield* input.tryTake('}')
  }
}

function* parseMember(context: ParserContext, call: PartialCall, key: string): ParseSteps<boolean> {
  const { input, names } = context
  if (call.state !== 'unknown') return yield* skipValue(input)
  if (nameKeys.includes(key)) {
    const name = yield* parseOneOfStrings(input, names)
    if (name === undefined) return false
    call.name = name
    if (call.earlyArguments !== undefined) beginCall(context, call)
    return true
  }
  return argumentKeys.includes(key) ? yield* parseArguments(context, call) : yield* skipValue(input)
}

function* parseArguments(context: ParserContext, call: PartialCall): ParseSteps<boolean> {
  const { input, output } = context
  const first = yield* input.peek()
  if (first !== '{' && first !== '"' && first !== 'n') return false
  const buffered: string[] = []
  if (call.name !== undefined) beginCall(context, call)
  const emit = (json: string): void => {
    if (call.state === 'unknown') buffered.push(json)
    else output.addArguments(json)
  }
  const isNull = first === 'n' && (yield* input.tryTake('null'))
  if (isNull) emit('{}')
  const isComplete =
    isNull || (yield* first === '{' ? copyObject(input, emit) : copyQuotedObject(input, emit))
  if (!isComplete) return false
  if (call.state === 'started') call.state = 'complete'
  else call.earlyArguments = buffered.join('')
  return true
}

function beginCall({ input, output }: ParserContext, call: PartialCall): void {
  input.dropCapture()
  output.startCall(call.name as string)
  call.state = call.earlyArguments === undefined ? 'started' : 'complete'
  if (call.earlyArguments !== undefined) output.addArguments(call.earlyArguments)
}
