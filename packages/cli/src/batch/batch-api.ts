/** The interface to a server's batches. The commands use it for both APIs. */
import type { Server } from '../server.ts'
import type { RequestLine, RequestLines } from './request-lines.ts'

/** A batch as its API reports it. */
export interface BatchState {
  readonly id: string
  /** In the words of the API. */
  readonly status: string
  readonly isEnded: boolean
  /** Number of requests. 0 while the server still reads them. */
  readonly total: number
  /** Numbers of requests that have ended, by outcome. */
  readonly outcomes: Readonly<Record<string, number>>
  readonly createdAt: Date
  readonly expiresAt: Date | undefined
  readonly endedAt: Date | undefined
  /** Why no request ran. */
  readonly errors: readonly string[]
}

export interface BatchListPage {
  readonly batches: readonly BatchState[]
  readonly hasMore: boolean
}

export interface BatchApi {
  /** Sends the requests as they are read. */
  submit(
    server: Server,
    requests: Omit<RequestLines, 'lines'>,
    lines: AsyncIterable<RequestLine>,
  ): Promise<BatchState>
  get(server: Server, id: string): Promise<BatchState>
  /** The newest batch comes first. @param after last batch of the previous page */
  list(server: Server, limit: number, after: string | undefined): Promise<BatchListPage>
  cancel(server: Server, id: string): Promise<BatchState>
  /** Returns what was deleted. */
  delete(server: Server, id: string): Promise<string>
  /** Yields the lines of the results. Throws before the first one if there are none yet. */
  results(server: Server, id: string): AsyncGenerator<Uint8Array>
}

/** Number of requests that have ended. */
export const completedOf = ({ outcomes }: Pick<BatchState, 'outcomes'>): number =>
  Object.values(outcomes).reduce((sum, count) => sum + count, 0)

export const notEnded = ({ id, status }: BatchState): Error =>
  new Error(`${id} has not ended. Its status is ${status}. Wait for it: modelmount batch status ${id} --wait`)

/** Joins small pieces, because each piece is sent in a separate packet. */
export async function* toChunks(pieces: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  let text = ''
  for await (const piece of pieces) {
    text += piece
    if (text.length < chunkLength) continue
    yield Buffer.from(text)
    text = ''
  }
  if (text !== '') yield Buffer.from(text)
}

const chunkLength = 64 * 1024
