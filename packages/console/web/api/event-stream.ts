/** Server-sent events of the admin API, while the tab is visible. */
import { useQueryClient } from '@tanstack/preact-query'
import { useEffect, useState } from 'preact/hooks'
import { sessionKey } from './session.ts'

/** `lost` while the stream has ended, and is opened again. */
export type StreamState = 'connecting' | 'open' | 'lost'

/** For streams that the server has refused. EventSource itself only resumes streams that broke. */
const retryMs = 5_000

/**
 * Follows a stream. Hidden tabs close theirs, because browsers open only six connections to a server with HTTP/1.1.
 *
 * @param url relative to the page, such as `admin/events`
 * @param handlers by the name of the event. Keep the object stable between renders
 */
export function useEventStream(
  url: string,
  handlers: Readonly<Record<string, (data: unknown) => void>>,
): StreamState {
  const [state, setState] = useState<StreamState>('connecting')
  const client = useQueryClient()
  useEffect(() => {
    const stream = new VisibleStream(url, handlers, (next) => {
      setState(next)
      // The session may have ended: EventSource does not tell the status of a response.
      if (next === 'lost') void client.invalidateQueries({ queryKey: sessionKey })
    })
    return () => stream.close()
  }, [url, handlers, client])
  return state
}

class VisibleStream {
  readonly #url: string
  readonly #handlers: Readonly<Record<string, (data: unknown) => void>>
  readonly #onState: (state: StreamState) => void
  #source: EventSource | undefined
  #retry: ReturnType<typeof setTimeout> | undefined

  constructor(
    url: string,
    handlers: Readonly<Record<string, (data: unknown) => void>>,
    onState: (state: StreamState) => void,
  ) {
    this.#url = new URL(url, document.baseURI).href
    this.#handlers = handlers
    this.#onState = onState
    document.addEventListener('visibilitychange', this.#update)
    this.#update()
  }

  close(): void {
    document.removeEventListener('visibilitychange', this.#update)
    this.#disconnect()
  }

  readonly #update = (): void => {
    if (document.hidden) this.#disconnect()
    else if (this.#source === undefined) this.#connect()
  }

  #connect(): void {
    const source = new EventSource(this.#url)
    this.#source = source
    source.onopen = () => this.#onState('open')
    source.onerror = () => {
      this.#onState('lost')
      if (source.readyState !== EventSource.CLOSED) return
      this.#disconnect()
      this.#retry = setTimeout(this.#update, retryMs)
    }
    for (const [name, handle] of Object.entries(this.#handlers)) {
      source.addEventListener(name, ({ data }: MessageEvent<string>) => handle(JSON.parse(data)))
    }
  }

  #disconnect(): void {
    clearTimeout(this.#retry)
    this.#source?.close()
    this.#source = undefined
  }
}
