/** Qwen3-Coder, Qwen 3.5, Nemotron 3, StepFun and Seed-OSS: a tag for the function, and one for each parameter. */
import { callWithParameters, type Tags } from './parameters.ts'
import { behind, type Family, nameAmong } from './parser-context.ts'

const tags: Tags = {
  open: '<parameter=',
  keyEnds: ['>'],
  padding: '\n',
  valueEnds: ['\n</parameter>', '</parameter>'],
  close: ['</function>', '</tool_call>', '</seed:tool_call>'],
}
const open = '<function='

export const qwenCoder: Family = (scene) =>
  behind(['<tool_call>', '<seed:tool_call>', open], scene, function* (mark) {
    const { input } = scene
    yield* input.blank()
    if (mark !== open && !(yield* input.takes(open))) return false
    const name = yield* nameAmong(scene)
    if (name === undefined || !(yield* input.takes('>'))) return false
    yield* callWithParameters(name, scene, tags)
    return true
  })
