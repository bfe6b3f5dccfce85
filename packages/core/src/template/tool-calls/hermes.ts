/** Hermes, Qwen and the many who followed them: JSON between tags. Granite, Command R, Nemotron and Apriel differ in the tags. */
import { callObjects } from './call-objects.ts'
import { behind, type Family } from './parser-context.ts'

/** @param tags opening → closing, which is optional */
export const jsonBetween =
  (tags: Readonly<Record<string, string>>): Family =>
  (scene) =>
    behind(Object.keys(tags), scene, function* (open) {
      const isCall = yield* callObjects(scene, true)
      if (isCall) yield* scene.input.closes(tags[open] as string)
      return isCall
    })

export const hermes = jsonBetween({
  '<tool_call>': '</tool_call>',
  '<tool_calls>': '</tool_calls>',
  '<TOOLCALL>': '</TOOLCALL>',
  '<|START_ACTION|>': '<|END_ACTION|>',
})
