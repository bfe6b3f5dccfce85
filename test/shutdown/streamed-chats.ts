/** Streams of chats in each API, read as a client reads them. */
import { readEvents } from '@modelmount/core/testing'
import { post } from '../support/served.ts'

export interface ReadStream {
  readonly dialect: string
  /** The texts that were received. A scripted engine sends one per token. */
  readonly texts: readonly string[]
  /** Tokens with a log probability, if the request asks for them. */
  readonly loggedTokens: number
  /** Whether the stream has the last event of its API. */
  readonly isComplete: boolean
  /** The message of the error in the stream. */
  readonly error?: string
}

interface Dialect {
  readonly dialect: string
  readonly path: string
  readonly body: object
  /** Returns what one event contains. */
  read(data: string): ReadEvent
}

interface ReadEvent {
  readonly text?: string
  readonly loggedTokens?: number
  readonly isLast?: boolean
  readonly error?: string
}

export const dialects: readonly Dialect[] = [
  {
    dialect: 'openai',
    path: '/v1/chat/completions',
    body: {},
    read: (data) => {
      if (data === '[DONE]') return { isLast: true }
      const { choices, error } = JSON.parse(data)
      const [choice] = choices ?? []
      const loggedTokens = choice?.logprobs?.content?.length
      return { text: choice?.delta.content, loggedTokens, error: error?.message }
    },
  },
  {
    dialect: 'anthropic',
    path: '/v1/messages',
    body: { max_tokens: 4_000 },
    read: (data) => {
      const { type, delta, error } = JSON.parse(data)
      return { text: delta?.text, isLast: type === 'message_stop', error: error?.message }
    },
  },
  {
    dialect: 'ollama',
    path: '/api/chat',
    body: {},
    read: (data) => {
      const { message, done, error } = JSON.parse(data)
      return { text: message?.content, isLast: done === true, error }
    },
  },
]

/** Sends a chat and reads its stream to the end. @param onText called for each text */
export async function readChat(
  url: string,
  { dialect, path, body, read }: Dialect,
  { content, model = 'tiny', ...more }: { readonly content: string; readonly [field: string]: unknown },
  onText: () => void = () => {},
): Promise<ReadStream> {
  const messages = [{ role: 'user', content }]
  const response = await post(url + path, { model, stream: true, messages, ...body, ...more })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  const texts: string[] = []
  let loggedTokens = 0
  let isComplete = false
  let failure: string | undefined
  for await (const data of framesOf(response)) {
    const { text, isLast = false, error, ...event } = read(data)
    loggedTokens += event.loggedTokens ?? 0
    if (text) {
      texts.push(text)
      onText()
    }
    isComplete ||= isLast
    failure ??= error
  }
  return { dialect, texts, loggedTokens, isComplete, ...(failure !== undefined && { error: failure }) }
}

/** The data of server-sent events, or the lines of JSON lines. */
async function* framesOf({ headers, body }: Response): AsyncGenerator<string> {
  const bytes = body as ReadableStream<Uint8Array>
  if (headers.get('content-type')?.startsWith('text/event-stream')) {
    for await (const { data } of readEvents(bytes)) yield data
    return
  }
  let rest = ''
  for await (const text of bytes.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
}
