/** Calls as JSON objects that hold a name and arguments, which is how most families write them. */
import type { Steps } from '../input.ts'
import { copyObject, copyQuotedObject, skipValue, stringAmong } from './json.ts'
import type { Scene } from './parser-context.ts'

/**
 * One or a list of them, with or without brackets and commas. Whether there was one.
 * @param isMarked whether a mark says that these are calls; without one, arguments are not optional
 */
export function* callObjects(scene: Scene, isMarked: boolean): Steps<boolean> {
  const { input, voice } = scene
  let any = false
  for (;;) {
    yield* input.run(any ? ' \t\r\n,;]' : ' \t\r\n[')
    if ((yield* input.peek()) !== '{') return any
    if (any) input.keep()
    if (!(yield* callObject(scene, isMarked))) {
      if (any) voice.say('text', input.kept())
      return any
    }
    any = true
  }
}

const nameKeys = ['name', 'tool_name', 'function']
const argumentKeys = ['arguments', 'parameters']
const keys = [...nameKeys, ...argumentKeys, 'type', 'id', 'index', 'tool_call_id']

/** What is known of a call. */
interface Call {
  name?: string
  /** That stood before the name. */
  early?: string
  state: 'unknown' | 'begun' | 'whole'
}

function* callObject(scene: Scene, isMarked: boolean): Steps<boolean> {
  const { input, voice } = scene
  const call: Call = { state: 'unknown' }
  const isClosed = yield* members(scene, call, false)
  if (isClosed && isMarked && call.state === 'unknown' && call.name !== undefined) {
    call.early = '{}'
    begin(scene, call)
  }
  if (call.state === 'begun') voice.incomplete()
  if (call.state !== 'unknown') input.forget()
  return call.state !== 'unknown'
}

/** Some models wrap name and arguments once more, as OpenAI's API does. */
function* members(scene: Scene, call: Call, isInner: boolean): Steps<boolean> {
  const { input } = scene
  if (!(yield* input.takes('{'))) return false
  for (;;) {
    yield* input.blank()
    if (yield* input.takes('}')) return true
    const key = yield* stringAmong(input, keys)
    if (key === undefined) return false
    yield* input.blank()
    if (!(yield* input.takes(':'))) return false
    yield* input.blank()
    const isWrapped = key === 'function' && !isInner && (yield* input.peek()) === '{'
    const isTaken = isWrapped ? yield* members(scene, call, true) : yield* member(scene, call, key)
    if (!isTaken) return false
    yield* input.blank()
    if (!(yield* input.takes(','))) return yield* input.takes('}')
  }
}

function* member(scene: Scene, call: Call, key: string): Steps<boolean> {
  const { input, names } = scene
  if (call.state !== 'unknown') return yield* skipValue(input)
  if (nameKeys.includes(key)) {
    const name = yield* stringAmong(input, names)
    if (name === undefined) return false
    call.name = name
    if (call.early !== undefined) begin(scene, call)
    return true
  }
  return argumentKeys.includes(key) ? yield* argumentsOf(scene, call) : yield* skipValue(input)
}

function* argumentsOf(scene: Scene, call: Call): Steps<boolean> {
  const { input, voice } = scene
  const first = yield* input.peek()
  if (first !== '{' && first !== '"' && first !== 'n') return false
  const early: string[] = []
  if (call.name !== undefined) begin(scene, call)
  const give = (json: string): void => {
    if (call.state === 'unknown') early.push(json)
    else voice.arguments(json)
  }
  const isNull = first === 'n' && (yield* input.takes('null'))
  if (isNull) give('{}')
  const isWhole = isNull || (yield* first === '{' ? copyObject(input, give) : copyQuotedObject(input, give))
  if (!isWhole) return false
  if (call.state === 'begun') call.state = 'whole'
  else call.early = early.join('')
  return true
}

function begin({ input, voice }: Scene, call: Call): void {
  input.forget()
  voice.call(call.name as string)
  call.state = call.early === undefined ? 'begun' : 'whole'
  if (call.early !== undefined) voice.arguments(call.early)
}
