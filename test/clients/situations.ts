/** Situations that every SDK must handle on every mount. Each SDK implements the interface `Sdk`. */
import { expect, vi } from 'vitest'
import { keys, type Server } from './mounts.ts'

/** Calls and errors of one SDK. */
export interface Sdk {
  /** Creates a client with another base URL and without retries, which would hide failures. */
  connect(url: string, key: string): Client
  /** Creates a client that reads URL and key from the environment. Absent if the SDK cannot do that. */
  readonly fromEnvironment?: {
    variables(url: string, key: string): Readonly<Record<string, string>>
    connect(): Client
  }
  /** Fields that the API rejects with 400. */
  readonly badFields: object
  /** Fields that keep the API from truncating a long prompt. */
  readonly neverCut?: object
  /** Name of the error that an aborted stream throws. Absent if it ends without an error. */
  readonly abortError?: string
  readonly errors: Readonly<Record<Failure, ErrorShape>>
}

export interface Client {
  ask(messages: readonly Message[], fields?: object): Promise<string>
  stream(messages: readonly Message[]): Promise<Streaming>
}

export interface Streaming {
  readonly pieces: AsyncIterable<string>
  abort(): void
}

export interface Message {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

type Failure = 'unknown model' | 'bad body' | 'too long prompt' | 'engine killed' | 'wrong key'

/** Expected error. Its class must match exactly, because SDKs use subclasses for broken sockets. */
export type ErrorShape = readonly [className: string, like: object]

const hello: readonly Message[] = [{ role: 'user', content: 'Hello' }]
const greeting = 'Hello! How can I help you?'
const long: readonly Message[] = [{ role: 'user', content: 'fox '.repeat(5_000) }]
/** The model continues this prompt until its context is full, which takes most of a minute. */
const song: readonly Message[] = [
  { role: 'user', content: 'Sing.' },
  { role: 'assistant', content: Array(60).fill('la').join(' ') },
]

/** Each situation resolves with the text for its cell in the table of clients. */
export const situations = {
  'non-streamed answer': async (sdk, { url }) => {
    expect(await sdk.connect(url, keys.right).ask(hello)).toBe(greeting)

    return 'ok'
  },

  'streamed answer': async (sdk, { url }) => {
    const { pieces } = await sdk.connect(url, keys.right).stream(hello)
    const texts: string[] = []
    for await (const text of pieces) texts.push(text)

    expect(texts.join('')).toBe(greeting)
    expect(texts.length).toBeGreaterThan(3)
    return 'ok'
  },

  'aborted mid-stream': async (sdk, { url }) => {
    const client = sdk.connect(url, keys.right)
    const { pieces, abort } = await client.stream(song)
    let count = 0
    let hasEnded = false
    let late = 0
    const error = await thrownBy(async () => {
      for await (const _ of pieces) {
        if (hasEnded) late++
        if (++count !== 2) continue
        abort()
        // The rest of the same packet may still arrive before this turn of the event loop ends.
        setImmediate(() => {
          hasEnded = true
        })
      }
    })

    // If the aborted answer went on, the next call would be slow.
    const abortedAt = performance.now()
    const next = await client.ask(hello)

    expect(next).toBe(greeting)
    expect(performance.now() - abortedAt).toBeLessThan(5_000)
    expect(late).toBe(0)
    expect(error?.name).toBe(sdk.abortError)
    return error?.name ?? 'ends'
  },

  'unknown model': (sdk, { url }) =>
    refused(sdk, 'unknown model', () => sdk.connect(url, keys.right).ask(hello, { model: 'nope' })),

  'bad body': (sdk, { url }) =>
    refused(sdk, 'bad body', () => sdk.connect(url, keys.right).ask(hello, sdk.badFields)),

  'too long prompt': (sdk, { url }) =>
    refused(sdk, 'too long prompt', () => sdk.connect(url, keys.right).ask(long, sdk.neverCut)),

  'engine killed mid-stream': async (sdk, { url, killEngine }) => {
    const client = sdk.connect(url, keys.right)
    const { pieces } = await client.stream(song)
    let count = 0
    const outcome = await refused(sdk, 'engine killed', async () => {
      for await (const _ of pieces) if (++count === 1) killEngine()
    })

    expect(await client.ask(hello)).toBe(greeting)
    return outcome
  },

  'key from the environment': async (sdk, { url }) => {
    const connect = (key: string): Client => {
      if (!sdk.fromEnvironment) return sdk.connect(url, key)
      const variables = Object.entries(sdk.fromEnvironment.variables(url, key))
      for (const [name, value] of variables) vi.stubEnv(name, value)
      return sdk.fromEnvironment.connect()
    }

    try {
      await refused(sdk, 'wrong key', () => connect(keys.wrong).ask(hello))
      expect(await connect(keys.right).ask(hello)).toBe(greeting)
    } finally {
      vi.unstubAllEnvs()
    }
    return sdk.fromEnvironment ? 'key and URL' : 'no: by `headers`'
  },
} as const satisfies Record<string, (sdk: Sdk, server: Server) => Promise<string>>

export type Situation = keyof typeof situations
export const situationNames = Object.keys(situations) as readonly Situation[]

/** Expects the call to reject with the error of this failure. Resolves with the class name of the error. */
async function refused(sdk: Sdk, failure: Failure, call: () => Promise<unknown>): Promise<string> {
  const [className, like] = sdk.errors[failure]
  const error = await thrownBy(call)

  expect(error?.constructor.name, String(error)).toBe(className)
  expect(error).toMatchObject(like)
  return className
}

const thrownBy = (call: () => Promise<unknown>): Promise<Error | undefined> =>
  call().then(
    () => undefined,
    (error: Error) => error,
  )
