/** GLM 4.5 and later: the name, then pairs of a key and a value. */
import { callWithParameters, type Tags } from './parameters.ts'
import { behind, type Family, nameAmong } from './parser-context.ts'

const tags: Tags = {
  open: '<arg_key>',
  keyEnds: ['</arg_key>'],
  value: '<arg_value>',
  valueEnds: ['</arg_value>'],
  close: ['</tool_call>'],
}

export const glm: Family = (scene) =>
  behind(['<tool_call>'], scene, function* () {
    const { input } = scene
    yield* input.blank()
    const name = yield* nameAmong(scene)
    if (name === undefined) return false
    yield* input.blank()
    const next = yield* input.peek()
    if (next !== '<') return false
    yield* callWithParameters(name, scene, tags)
    return true
  })
