/** Parses model output into reasoning, tool calls and text. */
import type { Tool } from '../engine/request.ts'
import type { TemplateFeatures } from './go-template/index.ts'
import { createIncrementalParser } from './input.ts'
import type { OutputParser, OutputPart } from './output-part.ts'
import { hasOwnTags, splitReasoning } from './reasoning.ts'
import { selectCallFormat } from './tool-calls/call-formats.ts'
import { hasMessageMarkup, type ToolCallFamily } from './tool-calls/detect.ts'
import { createBareJsonParser, genericTags } from './tool-calls/families/generic.ts'
import type { ToolCallParser } from './tool-calls/parser-context.ts'
import { toolCallParsers } from './tool-calls/parsers.ts'

export interface ExpectedOutput {
  /** Source of the chat template. */
  readonly template: string
  /** Result of `detectFamily` for the template. */
  readonly family: ToolCallFamily
  /** Tags of reasoning and tool calls that occur in a Go template. */
  readonly templateFeatures?: Pick<TemplateFeatures, 'thinking' | 'calls'>
  /** The end of the prompt. */
  readonly prompt: string
  /** Whether to separate reasoning from text. Families with message markup always separate them. */
  readonly reasoning: boolean
  /** Callable tools. Calls of other tools stay text. */
  readonly tools: readonly Tool[]
  /** Whether a grammar constrains the output, because a tool call is required or the content has a format. */
  readonly isConstrained?: boolean
}

/**
 * Returns the family whose markup the output has. Returns `generic` if a grammar enforces generic tool calls,
 * because the family has no JSON format.
 */
export function selectFamily(expected: ExpectedOutput): ToolCallFamily {
  const { family, isConstrained = false, tools } = expected
  if (!isConstrained || selectCallFormat(expected)) return family
  return hasMessageMarkup(family) && tools.length === 0 ? family : 'generic'
}

const createGenericParser = ({ open, close }: NonNullable<TemplateFeatures['calls']>): ToolCallParser =>
  createBareJsonParser({ ...genericTags, [open]: close })

/** Creates a parser whose result does not depend on how the text is split into chunks. */
export function parseOutput(expected: ExpectedOutput): OutputParser {
  const { template, templateFeatures = {}, prompt, reasoning, tools } = expected
  const family = selectFamily(expected)
  const parse =
    family === 'generic' && templateFeatures.calls
      ? createGenericParser(templateFeatures.calls)
      : toolCallParsers[family]
  const callParser =
    tools.length > 0 || hasMessageMarkup(family)
      ? createIncrementalParser((input, output) =>
          parse({ input, output, tools, prompt, names: tools.map(({ name }) => name) }),
        )
      : textParser
  return reasoning && !hasMessageMarkup(family)
    ? chainParsers(splitReasoning(prompt, template, templateFeatures.thinking), callParser)
    : callParser
}

/** Whether the markup can contain control tokens. If false, detokenization may drop control tokens. */
export const hasControlTokens = ({
  template,
  family,
  templateFeatures,
  reasoning,
  tools,
}: ExpectedOutput): boolean =>
  tools.length > 0 ||
  hasMessageMarkup(family) ||
  (reasoning && hasOwnTags(template, templateFeatures?.thinking))

const textParser: OutputParser = {
  push: (text) => [{ type: 'text', text }],
  flush: () => [],
}

/** Passes the text parts of the first parser to the second. */
function chainParsers(first: OutputParser, second: OutputParser): OutputParser {
  const parseText = (parts: readonly OutputPart[]): readonly OutputPart[] =>
    parts.flatMap((part) => (part.type === 'text' ? second.push(part.text) : [part]))
  return {
    push: (text) => parseText(first.push(text)),
    flush: (isCut) => [...parseText(first.flush(isCut)), ...second.flush(isCut)],
  }
}
