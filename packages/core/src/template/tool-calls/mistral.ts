/** Mistral: a token, then a list of JSON objects; since 2025 a name, an id perhaps, and arguments. */
import { callObjects } from './call-objects.ts'
import { behind, callWith, type Family, nameAmong } from './parser-context.ts'

export const mistral: Family = (scene) =>
  behind(['[TOOL_CALLS]'], scene, function* () {
    const { input } = scene
    yield* input.blank()
    const first = yield* input.peek()
    if (first === '[' || first === '{') return yield* callObjects(scene, true)
    const name = yield* nameAmong(scene)
    if (name === undefined) return false
    if (yield* input.takes('[CALL_ID]')) yield* input.run(idCharacters)
    yield* input.takes('[ARGS]')
    return yield* callWith(name, scene)
  })

const idCharacters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-'
