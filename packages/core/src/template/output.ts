/** What a model writes, taken apart: thoughts, tool calls, text. */
import type { Tool } from '../engine/request.ts'
import type { TemplateFeatures } from './go-template/index.ts'
import { createIncrementalParser } from './input.ts'
import type { OutputParser, OutputPart } from './output-part.ts'
import { hasOwnTags, splitReasoning } from './reasoning.ts'
import { selectCallFormat } from './tool-calls/call-formats.ts'
import type { ToolCallFamily } from './tool-calls/detect.ts'
import { createBareJsonParser, genericTags } from './tool-calls/generic.ts'
import type { ToolCallParser } from './tool-calls/parser-context.ts'
import { toolCallParsers } from './tool-calls/parsers.ts'

export interface ExpectedOutput {
  /** The source of the model's chat template. */
  readonly template: string
  /** Detected from the template; see `detectFamily`. */
  readonly family: ToolCallFamily
  /** What it shows of thoughts and calls beyond the families that are known. */
  readonly templateFeatures?: Pick<TemplateFeatures, 'thinking' | 'calls'>
  /** How the prompt ends. */
  readonly prompt: string
  /** Whether thoughts are told apart. gpt-oss does it always. */
  readonly reasoning: boolean
  /** Those that may be called; what looks like a call of another one is text. */
  readonly tools: readonly Tool[]
  /** A grammar says how they are called: one has to be, or what is said instead has a format. */
  readonly isConstrained?: boolean
}

/** Who writes no JSON calls is made to write generic ones. */
const selectFamily = (expected: ExpectedOutput): ToolCallFamily =>
  expected.isConstrained && !selectCallFormat(expected) ? 'generic' : expected.family

/** @param calls what a template puts around calls */
const createGenericParser = ({ open, close }: NonNullable<TemplateFeatures['calls']>): ToolCallParser =>
  createBareJsonParser({ ...genericTags, [open]: close })

/** The same, in however many pieces the text comes. */
export function parseOutput(expected: ExpectedOutput): OutputParser {
  const { template, templateFeatures = {}, prompt, reasoning, tools } = expected
  const family = selectFamily(expected)
  const parse =
    family === 'generic' && templateFeatures.calls
      ? createGenericParser(templateFeatures.calls)
      : toolCallParsers[family]
  const callParser =
    tools.length > 0 || family === 'harmony'
      ? createIncrementalParser((input, output) =>
          parse({ input, output, tools, prompt, names: tools.map(({ name }) => name) }),
        )
      : textParser
  return reasoning && family !== 'harmony'
    ? chainParsers(splitReasoning(prompt, template, templateFeatures.thinking), callParser)
    : callParser
}

/** Whether their markup has tokens that are left out of text elsewhere. */
export const hasControlTokens = ({
  template,
  family,
  templateFeatures,
  reasoning,
  tools,
}: ExpectedOutput): boolean =>
  tools.length > 0 || family === 'harmony' || (reasoning && hasOwnTags(template, templateFeatures?.thinking))

const textParser: OutputParser = {
  push: (text) => [{ type: 'text', text }],
  flush: () => [],
}

/** The second reads what is text to the first. */
function chainParsers(first: OutputParser, second: OutputParser): OutputParser {
  const parseText = (parts: readonly OutputPart[]): readonly OutputPart[] =>
    parts.flatMap((part) => (part.type === 'text' ? second.push(part.text) : [part]))
  return {
    push: (text) => parseText(first.push(text)),
    flush: () => [...parseText(first.flush()), ...second.flush()],
  }
}
