/** What a model writes, taken apart: thoughts, tool calls, text. */
import type { Tool } from '../engine/request.ts'
import type { Uses } from './go-template/index.ts'
import { incremental, type Parser } from './input.ts'
import type { Said } from './output-part.ts'
import { hasOwnTags, splitReasoning } from './reasoning.ts'
import { type FamilyName, families, familyOf } from './tool-calls/detect.ts'
import { callFormOf } from './tool-calls/forms.ts'
import { bareJson, genericTags } from './tool-calls/generic.ts'
import type { Family } from './tool-calls/parser-context.ts'

export interface Expected {
  /** The source of the model's chat template. */
  readonly template: string
  /** What it shows of thoughts and calls beyond the families that are known. */
  readonly shown?: Pick<Uses, 'thinking' | 'calls'>
  /** How the prompt ends. */
  readonly prompt: string
  /** Whether thoughts are told apart. gpt-oss does it always. */
  readonly reasoning: boolean
  /** Those that may be called; what looks like a call of another one is text. */
  readonly tools: readonly Tool[]
  /** A grammar says how they are called: one has to be, or what is said instead has a format. */
  readonly held?: boolean
}

/** Who writes no JSON calls is made to write generic ones. */
const familyIn = ({ template, prompt, held }: Expected): FamilyName =>
  held && !callFormOf(template, prompt) ? 'generic' : familyOf(template)

/** @param calls what a template puts around calls */
const genericWith = ({ open, close }: NonNullable<Uses['calls']>): Family =>
  bareJson({ ...genericTags, [open]: close })

/** The same, in however many pieces the text comes. */
export function parseOutput(expected: Expected): Parser {
  const { template, shown = {}, prompt, reasoning, tools } = expected
  const family = familyIn(expected)
  const read = family === 'generic' && shown.calls ? genericWith(shown.calls) : families[family]
  const calls =
    tools.length > 0 || family === 'harmony'
      ? incremental((input, voice) =>
          read({ input, voice, tools, prompt, names: tools.map(({ name }) => name) }),
        )
      : plain
  return reasoning && family !== 'harmony'
    ? inTurn(splitReasoning(prompt, template, shown.thinking), calls)
    : calls
}

/** Whether their markup has tokens that are left out of text elsewhere. */
export const hasControlTokens = ({ template, shown, reasoning, tools }: Expected): boolean =>
  tools.length > 0 || familyOf(template) === 'harmony' || (reasoning && hasOwnTags(template, shown?.thinking))

const plain: Parser = {
  push: (text) => [{ type: 'text', text }],
  flush: () => [],
}

/** The second reads what is text to the first. */
function inTurn(first: Parser, second: Parser): Parser {
  const read = (said: readonly Said[]): readonly Said[] =>
    said.flatMap((one) => (one.type === 'text' ? second.push(one.text) : [one]))
  return {
    push: (text) => read(first.push(text)),
    flush: () => [...read(first.flush()), ...second.flush()],
  }
}
