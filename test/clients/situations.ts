/** Situations that every SDK passes on every mount, through the interface `Sdk`. */
import { expect, vi } from 'vitest'
import { keys, type Server } from './mounts.ts'

/** One SDK: its calls, and its errors. */
export interface Sdk {
  /** Changes the base URL, and nothing else about where it calls. No call is tried twice: that would hide failures. */
  connect(url: string, key: string): Client
  /** Given neither URL nor key. Absent where the SDK reads no environment. */
  readonly fromEnvironment?: {
    variables(url: string, key: string): Readonly<Record<string, string>>
    connect(): Client
  }
  /** Fields that the API refuses. */
  readonly badFields: object
  /** Fields without which the API would make a long prompt fit. */
  readonly neverCut?: object
  /** How a stream ends that was aborted, if it throws then. */
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

/** Of the class itself, none below it: what SDKs throw at a broken socket may be a subclass of their error. */
export type ErrorShape = readonly [className: string, like: object]

const hello: readonly Message[] = [{ role: 'user', content: 'Hello' }]
const greeting = 'Hello! How can I help you?'
const long: readonly Message[] = [{ role: 'user', content: 'fox '.repeat(5_000) }]
/** Continued until the context is full, which takes most of a minute. */
const song: readonly Message[] = [
  { role: 'user', content: 'Sing.' },
  { role: 'assistant', content: Array(60).fill('la').join(' ') },
]

/** Each resolves with what the table of clients shows. */
export const situations = {
  whole: async (sdk, { url }) => {
    expect(await sdk.connect(url, keys.right).ask(hello)).toBe(greeting)

    return 'ok'
  },

  streamed: async (sdk, { url }) => {
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
    let left = false
    let late = 0
    const error = await thrownBy(async () => {
      for await (const _ of pieces) {
        if (left) late++
        if (++count !== 2) continue
        abort()
        // Data of the same packet is emitted before this turn of the event loop ends.
        setImmediate(() => {
          left = true
        })
      }
    })

    // One answer at a time: the song would keep this one waiting.
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

/** @returns the name of the error's class */
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
