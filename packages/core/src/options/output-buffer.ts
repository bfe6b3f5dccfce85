/** Options of the buffers for slow readers. */
import { type ByteSize, type Duration, toBytes } from '../units.ts'
import { checkKeys, parseOption } from './check.ts'
import { resolveTimeout } from './timeout.ts'

export interface OutputBufferOptions {
  /**
   * Memory for the unread output of one caller: bytes, or `'16mb'`. All callers of one tenant count as one.
   * While it is full, their generations wait for their readers. With 0, they always do.
   *
   * @default '16mb'
   */
  perCaller?: ByteSize | undefined

  /**
   * Memory for the unread output of all callers: bytes, or `'128mb'`. One caller can use at most as much as is
   * free. Then its generations wait for readers that are behind.
   *
   * @default '128mb'
   */
  total?: ByteSize | undefined

  /**
   * How long a reader may take nothing while output waits for it, and how long a generation may wait for its
   * reader in total: `'1m'`, or milliseconds, from 1 s to 24 h. Then the answer ends, and the connection of
   * the client is closed. Output that waits in the socket, such as a whole answer, has up to twice this time.
   *
   * @default '1m'
   */
  stallTimeout?: Duration | undefined
}

export interface ResolvedOutputBufferOptions {
  readonly tenantBytes: number
  readonly totalBytes: number
  readonly stallMs: number
}

const stallRange = { minMs: 1_000, maxMs: 86_400_000, text: 'from 1 s to 24 h' }

export function resolveOutputBufferOptions(options: OutputBufferOptions = {}): ResolvedOutputBufferOptions {
  checkKeys('outputBuffer.', options, ['perCaller', 'total', 'stallTimeout'])
  const { perCaller = '16mb', total = '128mb', stallTimeout = '1m' } = options
  return {
    tenantBytes: parseOption('outputBuffer.perCaller', () => toBytes(perCaller)),
    totalBytes: parseOption('outputBuffer.total', () => toBytes(total)),
    stallMs: resolveTimeout('outputBuffer.stallTimeout', stallTimeout, stallRange),
  }
}
