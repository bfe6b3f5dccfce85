/** The contract of tool-call parsers. */
import type { Tool } from '../../engine/request.ts'
import type { ParserInput, ParseSteps } from '../input.ts'
import type { OutputBuilder } from '../output-part.ts'

export interface ParserContext {
  readonly input: ParserInput
  readonly output: OutputBuilder
  readonly tools: readonly Tool[]
  readonly names: readonly string[]
  /** The end of the prompt: some templates write the start of the output. */
  readonly prompt: string
}

/** Parses a complete output in the format of one family. Calls of unknown tools are text. */
export type ToolCallParser = (context: ParserContext) => ParseSteps
