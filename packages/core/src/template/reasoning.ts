/** Separates reasoning from the answer. Reasoning is the text between two tags at the start of the output. */
import { createIncrementalParser, type ParserInput, type ParseSteps } from './input.ts'
import type { OutputBuilder, OutputParser } from './output-part.ts'

export interface ReasoningTags {
  readonly open: string
  readonly close: string
  /** Text in the templates of the family. @default `close` */
  readonly sign?: string
}

/**
 * Tags of DeepSeek, Qwen, GLM, Granite 3.3 and most other models. Fine-tuned models use these tags even if
 * their template does not.
 */
const commonTags: ReasoningTags = { open: '<think>', close: '</think>' }

const familyTags: readonly ReasoningTags[] = [
  { open: '<seed:think>', close: '</seed:think>' },
  // Mistral.
  { open: '[THINK]', close: '[/THINK]' },
  // Gemma 4.
  { open: '<|channel>thought', close: '<channel|>' },
  // Command R7B.
  { open: '<|START_THINKING|>', close: '<|END_THINKING|>' },
  // MiniMax-M3.
  { open: '<mm:think>', close: '</mm:think>' },
  // Hunyuan 3. Its template adds the suffix.
  { open: '<think:opensource>', close: '</think:opensource>', sign: '</think{}>' },
  // Apertus.
  { open: '<|inner_prefix|>', close: '<|inner_suffix|>' },
  // Granite 3.2.
  { open: 'Here is my thought process:', close: 'Here is my response:' },
]

/** If Granite 3.3 reasons, it also wraps its answer in these tags. */
const answerTags: ReasoningTags = { open: '<response>', close: '</response>' }

/** Whether a model has tags besides the common tags, which every tokenizer treats as text. */
export const hasOwnTags = (template: string, templateTags?: ReasoningTags): boolean =>
  (templateTags && templateTags.open !== commonTags.open) ||
  familyTags.some((tags) => isSignedIn(template, tags))

const isSignedIn = (template: string, { close, sign = close }: ReasoningTags): boolean =>
  template.includes(sign)

/** @param templateTags reasoning tags that occur in a Go template */
const listTags = (template: string, templateTags: ReasoningTags | undefined): readonly ReasoningTags[] => [
  ...(templateTags ? [templateTags] : []),
  commonTags,
  ...familyTags.filter((tags) => isSignedIn(template, tags)),
]

interface ReasoningBlock extends ReasoningTags {
  /** Whether the prompt already contains `open`. If not, reasoning is optional. */
  readonly isOpen: boolean
}

/**
 * Detects the reasoning block before an answer.
 * @param reasoning whether the request asks for reasoning
 */
export function detectReasoningBlock(
  prompt: string,
  template: string,
  reasoning: boolean,
  templateTags?: ReasoningTags,
): ReasoningBlock | undefined {
  const end = prompt.trimEnd()
  const known = listTags(template, templateTags)
  const opened = known.find(({ open }) => end.endsWith(open))
  if (!opened && !reasoning) return undefined
  const { open, close } =
    opened ?? templateTags ?? known.find((tags) => isSignedIn(template, tags)) ?? commonTags
  return { open, close, isOpen: opened !== undefined }
}

/**
 * Creates a parser that separates reasoning and drops white space around the reasoning tags.
 * @param prompt can end with the opening tag, which some templates write
 * @param template source of the chat template, which determines the tags
 * @param templateTags reasoning tags that occur in a Go template
 */
export const splitReasoning = (prompt: string, template = '', templateTags?: ReasoningTags): OutputParser =>
  createIncrementalParser((input, output) =>
    parseReasoning(input, output, template, prompt.trimEnd(), templateTags),
  )

function* parseReasoning(
  input: ParserInput,
  output: OutputBuilder,
  template: string,
  prompt: string,
  templateTags: ReasoningTags | undefined,
): ParseSteps {
  const emitText = (text: string): void => output.addText('text', text)
  const known = listTags(template, templateTags)
  let tags = known.find(({ open }) => prompt.endsWith(open))
  if (!tags) {
    input.startCapture()
    yield* input.skipBlanks()
    for (const candidate of known) if (!tags && (yield* input.tryTake(candidate.open))) tags = candidate
    if (!tags && (yield* input.tryTakeCut(known.map(({ open }) => open)))) input.dropCapture()
  }
  if (tags) {
    input.dropCapture()
    output.markBoundary()
    const { close } = tags
    if (yield* input.takeUpTo([close], (text) => output.addText('reasoning', text))) input.skip(close.length)
    output.markBoundary()
  }
  output.isTrimming = false
  if (tags && template.includes(answerTags.close)) {
    input.startCapture()
    yield* input.skipBlanks()
    if (yield* input.tryTake(answerTags.open)) {
      input.dropCapture()
      output.isTrimming = true
      if (yield* input.takeUpTo([answerTags.close], emitText)) input.skip(answerTags.close.length)
      output.markBoundary()
    } else if (yield* input.tryTakeCut([answerTags.open])) input.dropCapture()
  }
  emitText(input.takeCaptured())
  yield* input.takeUpTo([], emitText)
}
