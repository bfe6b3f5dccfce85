/** gpt-oss: an answer is several messages, each with a channel and perhaps a recipient. Thoughts are one of them. */
import type { Steps } from '../input.ts'
import { callWith, type Family, type Scene } from './parser-context.ts'

const start = '<|start|>'
const channel = '<|channel|>'
const message = '<|message|>'
const ends = ['<|end|>', '<|call|>', '<|return|>', start, channel] as const

/** No header is longer: what is, is none. */
const maxHeader = 200

export const harmony: Family = function* (scene) {
  const { input, voice, prompt } = scene
  const opened = prompt.slice(Math.max(0, prompt.lastIndexOf(start)))
  // A message that is continued has its header in the prompt.
  if (opened !== '' && !opened.endsWith('assistant')) yield* content(channelOf(opened), scene)
  for (;;) {
    input.keep()
    yield* input.blank()
    if ((yield* input.peek()) === '') break
    const header = yield* headerOf(scene)
    if (header === undefined) {
      voice.say('text', input.kept())
      yield* content('final', scene)
      continue
    }
    const recipient = /to=(?:functions\.)?([^\s<]+)/.exec(header)?.[1]
    if (recipient === undefined) {
      input.forget()
      voice.mark()
      yield* content(channelOf(header), scene)
    } else if (scene.names.includes(recipient) && (yield* callWith(recipient, scene))) {
      yield* endOf(scene)
    } else {
      voice.say('text', input.kept())
      yield* content('final', scene)
    }
  }
  voice.say('text', input.kept())
}

const channelOf = (header: string): string => /<\|channel\|>\s*(\w+)/.exec(header)?.[1] ?? 'final'

/** Up to where the content begins; empty where it is broken off, undefined where it is none. */
function* headerOf({ input }: Scene): Steps<string | undefined> {
  const isStarted = yield* input.takes(start)
  yield* input.takes('assistant')
  yield* input.blank()
  let header = (yield* input.takes('to=')) ? 'to=' : ''
  const isMarkup = (yield* input.peek()) === '<' && (yield* input.peek(1)) === '|'
  if (header === '' && !isMarkup && (yield* input.peek()) !== '') return undefined
  while (header.length < maxHeader) {
    if (yield* input.takes(message)) return header
    const character = yield* input.peek()
    if (character === '') return isStarted || header.includes(channel) ? '' : undefined
    if (character === '\n') return undefined
    header += character
    input.skip()
  }
  return undefined
}

function* content(channel: string, scene: Scene): Steps {
  const type = channel === 'analysis' ? 'reasoning' : 'text'
  if (yield* scene.input.upTo(ends, (text) => scene.voice.say(type, text))) scene.voice.mark()
  yield* endOf(scene)
}

/** What follows is the header of the next message. */
function* endOf({ input }: Scene): Steps {
  yield* input.blank()
  for (const end of ends.slice(0, 3)) yield* input.closes(end)
}
