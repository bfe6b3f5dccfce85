/** DeepSeek: R1 and V3 put JSON behind the name, since V3.2 each parameter has its tag. */
import type { Steps } from '../input.ts'
import { callWithParameters, type Tags } from './parameters.ts'
import { behind, callWith, type Family, nameAmong, type Scene } from './parser-context.ts'

const list = ['<｜tool▁calls▁begin｜>', '<｜tool▁calls▁end｜>'] as const
const single = ['<｜tool▁call▁begin｜>', '<｜tool▁call▁end｜>'] as const
const separator = '<｜tool▁sep｜>'
const invoke = '<｜DSML｜invoke name="'
const tags: Tags = {
  open: '<｜DSML｜parameter name="',
  keyEnds: ['" string="true">', '" string="false">'],
  valueEnds: ['</｜DSML｜parameter>'],
  close: ['</｜DSML｜invoke>', '</｜DSML｜function_calls>', '</｜DSML｜tool_calls>'],
}

export const deepseek: Family = (scene) =>
  behind(
    [list[0], single[0], '<｜DSML｜function_calls>', '<｜DSML｜tool_calls>', invoke],
    scene,
    function* (mark) {
      const { input } = scene
      yield* input.blank()
      if (mark === single[0]) return yield* jsonCall(scene)
      if (mark === list[0]) return (yield* input.takes(single[0])) && (yield* jsonCall(scene))
      if (mark !== invoke && !(yield* input.takes(invoke))) return false
      const name = yield* nameAmong(scene)
      if (name === undefined || !(yield* input.takes('">'))) return false
      yield* callWithParameters(name, scene, tags)
      return true
    },
  )

function* jsonCall(scene: Scene): Steps<boolean> {
  const { input } = scene
  // R1 says what it calls, V3.1 does not.
  yield* input.takes(`function${separator}`)
  const name = yield* nameAmong(scene)
  if (name === undefined) return false
  yield* input.takes(separator)
  yield* input.blank()
  yield* input.takes('```json')
  if (!(yield* callWith(name, scene))) return false
  for (const end of ['```', single[1], list[1]]) {
    yield* input.blank()
    yield* input.closes(end)
  }
  return true
}
