/** Interface of tool-call parsers. */
import type { Tool } from '../../engine/request.ts'
import type { ParserInput, ParseSteps } from '../input.ts'
import type { OutputBuilder } from '../output-part.ts'

export interface ParserContext {
  readonly input: ParserInput
  readonly output: OutputBuilder
  readonly tools: readonly Tool[]
  readonly names: readonly string[]
  /** The end of the prompt. Some templates write the start of the output there. */
  readonly prompt: string
}

/** Parses a complete output in the format of one model family. Calls of unknown tools stay text. */
export type ToolCallParser = (context: ParserContext) => ParseSteps
