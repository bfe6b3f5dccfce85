/** Output of gpt-oss (Harmony format): several messages, each with a channel and an optional recipient. */
import type { ParseSteps } from '../../input.ts'
import { parseCallArguments } from '../parse-calls.ts'
import type { ParserContext, ToolCallParser } from '../parser-context.ts'

const start = '<|start|>'
const channel = '<|channel|>'
const message = '<|message|>'
const endMarkers = ['<|end|>', '<|call|>', '<|return|>', start, channel] as const

/** Maximum length of a message header, in characters. Longer text is not a header. */
const maxHeaderLength = 200

export const harmony: ToolCallParser = function* (context) {
  const { input, output, prompt } = context
  const opened = prompt.slice(Math.max(0, prompt.lastIndexOf(start)))
  // The header of a continued message is in the prompt.
  if (opened !== '' && !opened.endsWith('assistant')) yield* parseContent(extractChannel(opened), context)
  for (;;) {
    input.startCapture()
    yield* input.skipBlanks()
    if ((yield* input.peek()) === '') break
    const header = yield* parseHeader(context)
    if (header === undefined) {
      output.addText('text', input.takeCaptured())
      yield* parseContent('final', context)
      continue
    }
    const recipient = /to=(?:functions\.)?([^\s<]+)/.exec(header)?.[1]
    if (recipient === undefined) {
      input.dropCapture()
      output.markBoundary()
      yield* parseContent(extractChannel(header), context)
    } else if (context.names.includes(recipient) && (yield* parseCallArguments(recipient, context))) {
      yield* skipEndMarkers(context)
    } else {
      output.addText('text', input.takeCaptured())
      yield* parseContent('final', context)
    }
  }
  output.addText('text', input.takeCaptured())
}

const extractChannel = (header: string): string => /<\|channel\|>\s*(\w+)/.exec(header)?.[1] ?? 'final'

/**
 * Parses a message header, up to the content. Returns an empty string if the header is cut off, and
 * `undefined` if the text is not a header.
 */
function* parseHeader({ input }: ParserContext): ParseSteps<string | undefined> {
  const isStarted = yield* input.tryTake(start)
  yield* input.tryTake('assistant')
  yield* input.skipBlanks()
  let header = (yield* input.tryTake('to=')) ? 'to=' : ''
  const isMarkup = (yield* input.peek()) === '<' && (yield* input.peek(1)) === '|'
  if (header === '' && !isMarkup && (yield* input.peek()) !== '') return undefined
  while (header.length < maxHeaderLength) {
    if (yield* input.tryTake(message)) return header
    const character = yield* input.peek()
    if (character === '') return isStarted || header.includes(channel) ? '' : undefined
    if (character === '\n') return undefined
    header += character
    input.skip()
  }
  return undefined
}

function* parseContent(channel: string, context: ParserContext): ParseSteps {
  const type = channel === 'analysis' ? 'reasoning' : 'text'
  if (yield* context.input.takeUpTo(endMarkers, (text) => context.output.addText(type, text)))
    context.output.markBoundary()
  yield* skipEndMarkers(context)
}

/** Skips end markers before the next header. */
function* skipEndMarkers({ input }: ParserContext): ParseSteps {
  yield* input.skipBlanks()
  for (const end of endMarkers.slice(0, 3)) yield* input.tryTakeClosing(end)
}
