/** A server process of `test/usage/server.mjs`, and the streams that clients read from it. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export interface KillableServer {
  readonly url: string
  /** Sends SIGKILL to the server, and waits for its end. */
  kill(): Promise<void>
  /** Sends SIGKILL to the model process of the server. Resolves with false if it has none. */
  killModelProcess(): Promise<boolean>
}

export async function startKillableServer(database: string, settings: object): Promise<KillableServer> {
  const path = fileURLToPath(new URL('../usage/server.mjs', import.meta.url))
  const server: ChildProcess = fork(path, [database, JSON.stringify(settings)])
  const [url] = (await once(server, 'message')) as [string]
  return {
    url,
    kill: async () => {
      if (server.exitCode !== null || server.signalCode !== null) return
      const exit = once(server, 'exit')
      server.kill('SIGKILL')
      await exit
    },
    killModelProcess: async () => {
      const ended = new AbortController()
      const { signal } = ended
      const reply = Promise.race([once(server, 'message', { signal }), once(server, 'exit', { signal })])
      server.send('kill')
      const [killed] = (await reply.finally(() => ended.abort())) as [number | null]
      return (killed ?? 0) > 0
    },
  }
}

/** The part of a stream that a client has received. */
export interface Received {
  id: string | undefined
  /** Number of chunks with text. Each is one token of the scripted engine, and at least one of a real one. */
  chunks: number
  /** Tokens that the server has reported at the end of the stream. */
  reportedTokens: number | undefined
  isWhole: boolean
  /** The status and `retry-after` of a refused request. */
  refusal: { readonly status: number; readonly retryAfterS: number } | undefined
}

/**
 * Reads one streamed chat completion, and returns what came until its end, or until the server was killed.
 *
 * @param caller index of the caller in the settings of the server
 * @param onText called with each part of the stream
 */
export async function readStream(
  url: string,
  maxTokens: number,
  caller = 0,
  onText: () => void = () => {},
): Promise<Received> {
  const received: Received = {
    ...{ id: undefined, chunks: 0, reportedTokens: undefined, isWhole: false, refusal: undefined },
  }
  const body = {
    ...{ model: 'tiny', messages: [{ role: 'user', content: 'Tell a long story.' }], max_tokens: maxTokens },
    ...{ stream: true, stream_options: { include_usage: true } },
  }
  let text = ''
  try {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-caller': String(caller) },
      body: JSON.stringify(body),
    })
    if (!response.ok) {
      const retryAfterS = Number(response.headers.get('retry-after'))
      received.refusal = { status: response.status, retryAfterS }
    }
    const decoder = new TextDecoder()
    for await (const part of response.body as AsyncIterable<Uint8Array>) {
      text += decoder.decode(part, { stream: true })
      onText()
    }
  } catch {
    // The server was killed during the stream or before it.
  }
  received.id = /"id":"chatcmpl-([^"]+)"/.exec(text)?.[1]
  received.chunks = text.match(/"content":"[^"]/g)?.length ?? 0
  const reported = /"completion_tokens":(\d+)/.exec(text)?.[1]
  received.reportedTokens = reported === undefined ? undefined : Number(reported)
  received.isWhole = text.endsWith('data: [DONE]\n\n')
  return received
}
