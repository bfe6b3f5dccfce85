/** What the parsers of all families have in their hands. */
import type { Tool } from '../../engine/request.ts'
import type { ParserInput, ParseSteps } from '../input.ts'
import type { OutputBuilder } from '../output-part.ts'

export interface ParserContext {
  readonly input: ParserInput
  readonly output: OutputBuilder
  readonly tools: readonly Tool[]
  readonly names: readonly string[]
  /** The end of it: some templates open what the answer begins with. */
  readonly prompt: string
}

/** Reads a whole answer, in one family's words. What calls none of the tools is text. */
export type ToolCallParser = (context: ParserContext) => ParseSteps
