/** Calls as JSON with nothing that marks them: an object or a list of them at the beginning of a line. */
import { callObjects } from './call-objects.ts'
import type { Family } from './parser-context.ts'

const fence = '```'

/** @param tags that also mark calls, wherever they stand: opening → closing, which is optional */
export const bareJson = (tags: Readonly<Record<string, string>>): Family =>
  function* (scene) {
    const { input, voice } = scene
    const say = (text: string): void => voice.say('text', text)
    for (;;) {
      input.keep()
      yield* input.blank()
      const isFenced = yield* input.takes(fence)
      if (isFenced) yield* input.takes('json')
      if (yield* callObjects(scene, false)) {
        yield* input.blank()
        if (isFenced) yield* input.closes(fence)
        continue
      }
      say(input.kept())
      for (;;) {
        const mark = yield* input.upTo(['\n', ...Object.keys(tags)], say)
        if (mark === undefined) return
        if (mark === '\n') break
        input.keep()
        input.skip(mark.length)
        if (yield* callObjects(scene, true)) yield* input.closes(tags[mark] as string)
        else say(input.kept())
      }
    }
  }

/** Also of models that were told of tools in plain words, and know tags from their training. */
export const genericTags = { '<tool_call>': '</tool_call>' } as const
export const generic = bareJson(genericTags)
