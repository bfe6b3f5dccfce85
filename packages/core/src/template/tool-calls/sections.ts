/** Output that consists of sections with markup between them: reasoning, text and calls. */
import type { ParseSteps } from '../input.ts'
import type { ParserContext } from './parser-context.ts'

export interface SectionMarkup {
  /** Starts a section with reasoning. A prompt may end with it. */
  readonly think: string
  readonly call: string
  /** Starts a section with text, or ends any section. */
  readonly others: readonly string[]
}

/** @param parseCall parses what follows `call`. Returns `false` for a call that is not one, which becomes text */
export function* parseSections(
  context: ParserContext,
  { think, call, others }: SectionMarkup,
  parseCall: (context: ParserContext) => ParseSteps<boolean>,
): ParseSteps<void> {
  const { input, output, prompt } = context
  let type: 'reasoning' | 'text' = prompt.endsWith(think) ? 'reasoning' : 'text'
  for (;;) {
    const mark = yield* input.takeUpTo([think, call, ...others], (text) => output.addText(type, text))
    if (mark === undefined) return
    input.startCapture()
    input.skip(mark.length)
    if (mark === call && !(yield* parseCall(context)) && !(yield* input.isCutOff())) {
      output.addText(type, input.takeCaptured())
      continue
    }
    input.dropCapture()
    output.markBoundary()
    type = mark === think ? 'reasoning' : 'text'
  }
}
