/** Functionary: tags that hold the name (3.1), or messages to whoever they are for (3.2). */

import type { Steps } from '../input.ts'
import { behind, callWith, type Family, nameAmong, type Scene } from './parser-context.ts'

const tag = '<function='
const recipient = '>>>'

export const functionary: Family = function* (scene) {
  const { input, voice, prompt } = scene
  if (prompt.endsWith(recipient)) {
    input.keep()
    if (!(yield* addressed(scene))) voice.say('text', input.kept())
  }
  yield* behind([tag, recipient], scene, (mark) => (mark === tag ? tagged(scene) : addressed(scene)))
}

function* tagged(scene: Scene): Steps<boolean> {
  const { input } = scene
  const name = yield* nameAmong(scene)
  if (name === undefined || !(yield* input.takes('>')) || !(yield* callWith(name, scene))) return false
  yield* input.blank()
  yield* input.closes('</function>')
  return true
}

function* addressed(scene: Scene): Steps<boolean> {
  const { input, voice } = scene
  if (yield* input.takes('all\n')) {
    input.forget()
    voice.mark()
    return true
  }
  const name = yield* nameAmong(scene)
  return name !== undefined && (yield* callWith(name, scene))
}
