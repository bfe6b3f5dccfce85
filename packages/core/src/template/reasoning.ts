/** A model's thoughts apart from its answer: what stands between its family's tags before all else. */
import { type Input, incremental, type Parser, type Steps } from './input.ts'
import type { Voice } from './output-part.ts'

export interface Tags {
  readonly open: string
  readonly close: string
}

/** Of DeepSeek, Qwen, GLM, Granite 3.3 and most others: fine-tuned models know them, too, whatever their template says. */
const common: Tags = { open: '<think>', close: '</think>' }

const others: readonly Tags[] = [
  { open: '<seed:think>', close: '</seed:think>' },
  // Mistral.
  { open: '[THINK]', close: '[/THINK]' },
  // Gemma 4.
  { open: '<|channel>thought', close: '<channel|>' },
  // Command R7B.
  { open: '<|START_THINKING|>', close: '<|END_THINKING|>' },
  // Granite 3.2.
  { open: 'Here is my thought process:', close: 'Here is my response:' },
]

/** Granite 3.3 puts tags around its answer, too, when it thinks. */
const answer: Tags = { open: '<response>', close: '</response>' }

/** Whether a model has others than the common ones, which are text to every tokenizer. */
export const hasOwnTags = (template: string, own?: Tags): boolean =>
  (own && own.open !== common.open) || others.some(({ close }) => template.includes(close))

/** @param own that a template shows, which is known no further */
const tagsOf = (template: string, own: Tags | undefined): readonly Tags[] => [
  ...(own ? [own] : []),
  common,
  ...others.filter(({ close }) => template.includes(close)),
]

interface Thought extends Tags {
  /** The prompt has opened it; else the model may. */
  readonly isOpen: boolean
}

/** The thought in front of an answer, where there is one or may be. @param reasoning whether the model was told to think */
export function thoughtOf(
  prompt: string,
  template: string,
  reasoning: boolean,
  own?: Tags,
): Thought | undefined {
  const end = prompt.trimEnd()
  const open = tagsOf(template, own).find(({ open }) => end.endsWith(open))
  if (open) return { ...open, isOpen: true }
  if (!reasoning) return undefined
  const tags = own ?? tagsOf(template, own).find(({ close }) => template.includes(close)) ?? common
  return { ...tags, isOpen: false }
}

/**
 * White space around the tags is nobody's.
 * @param prompt some templates open the thoughts themselves
 * @param template says which tags the model uses
 * @param own others that it shows
 */
export const splitReasoning = (prompt: string, template = '', own?: Tags): Parser =>
  incremental((input, voice) => split(input, voice, template, prompt.trimEnd(), own))

function* split(input: Input, voice: Voice, template: string, prompt: string, own: Tags | undefined): Steps {
  const say = (text: string): void => voice.say('text', text)
  const known = tagsOf(template, own)
  let tags = known.find(({ open }) => prompt.endsWith(open))
  if (!tags) {
    input.keep()
    yield* input.blank()
    for (const one of known) if (!tags && (yield* input.takes(one.open))) tags = one
  }
  if (tags) {
    input.forget()
    voice.mark()
    const { close } = tags
    if (yield* input.upTo([close], (text) => voice.say('reasoning', text))) input.skip(close.length)
    voice.mark()
  }
  voice.trims = false
  if (tags && template.includes(answer.close)) {
    input.keep()
    yield* input.blank()
    if (yield* input.takes(answer.open)) {
      input.forget()
      voice.trims = true
      if (yield* input.upTo([answer.close], say)) input.skip(answer.close.length)
      voice.mark()
    }
  }
  say(input.kept())
  yield* input.upTo([], say)
}
