/** What the parsers of all families have in their hands. */
import type { Tool } from '../../engine/request.ts'
import type { Input, Steps } from '../input.ts'
import type { Voice } from '../output-part.ts'
import { copyObject, copyQuotedObject } from './json.ts'

export interface Scene {
  readonly input: Input
  readonly voice: Voice
  readonly tools: readonly Tool[]
  readonly names: readonly string[]
  /** The end of it: some templates open what the answer begins with. */
  readonly prompt: string
}

/** Reads a whole answer, in one family's words. What calls none of the tools is text. */
export type Family = (scene: Scene) => Steps

/** All is text but what stands behind a mark, where `call` finds a call there; else the mark is text, too. */
export function* behind(
  marks: readonly string[],
  { input, voice }: Scene,
  call: (mark: string) => Steps<boolean>,
): Steps {
  for (;;) {
    const mark = yield* input.upTo(marks, (text) => voice.say('text', text))
    if (mark === undefined) return
    input.keep()
    input.skip(mark.length)
    if (!(yield* call(mark))) voice.say('text', input.kept())
  }
}

/** A tool's name, without anything around it; undefined as soon as it cannot be one. */
export function* nameAmong({ input, names }: Scene): Steps<string | undefined> {
  let read = ''
  for (;;) {
    const next = read + (yield* input.peek())
    if (next === read || !names.some((name) => name.startsWith(next))) break
    read = next
    input.skip()
  }
  return names.includes(read) ? read : undefined
}

/** A call whose name was in front, where an object stands here, perhaps as a string. */
export function* callWith(name: string | undefined, { input, voice }: Scene): Steps<boolean> {
  yield* input.blank()
  const first = yield* input.peek()
  if (name === undefined || (first !== '{' && first !== '"')) return false
  input.forget()
  voice.call(name)
  const copy = first === '{' ? copyObject : copyQuotedObject
  if (!(yield* copy(input, (json) => voice.arguments(json)))) voice.incomplete()
  return true
}
