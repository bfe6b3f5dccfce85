/** Options for the bodies of HTTP requests. */
import { type ByteSize, type Duration, toBytes } from '../units.ts'
import { checkKeys, describeValue, parseOption } from './check.ts'
import { resolveTimeout } from './timeout.ts'

export interface BodyOptions {
  /**
   * Memory for the request bodies of all callers: bytes, or `'2gb'`, at least 1 MB. A body counts from its
   * first byte until its response is over, and an upload with its buffers only. An answer of more than 16 KiB
   * that is no stream counts until it is sent. A caller never gets more than stays free for the others. A
   * request that does not fit is rejected with 503. An eighth more is kept for the first 64 KiB of each tenant.
   *
   * @default '1gb'
   */
  readonly maxBytes?: ByteSize | undefined

  /**
   * Memory for the request bodies of one caller: bytes, or `'100mb'`, from 256 KB to half of `maxBytes`. All
   * callers of one tenant count as one. A single body above it is rejected with 413, and further bodies with 429.
   *
   * @default a quarter of `maxBytes`
   */
  readonly maxBytesPerCaller?: ByteSize | undefined

  /**
   * How long a client may pause before its body is complete: milliseconds, or `'30s'`, from 1 ms to 24 days.
   * The request is then rejected with 408. An upload may take any time as long as it progresses. Of other
   * bodies, which are held in memory, less than 1 KiB in this time counts as a pause. The rest of a body that is
   * not needed, because the request was rejected, must end within this time.
   *
   * @default '60s'
   */
  readonly stallTimeout?: Duration | undefined
}

export interface ResolvedBodyOptions {
  readonly maxBytes: number
  readonly maxBytesPerTenant: number
  readonly stallTimeoutMs: number
}

const leastBytes = toBytes('1mb')
/** Room for the buffers of two uploads. */
const leastBytesPerCaller = toBytes('256kb')

export function resolveBodyOptions(options: BodyOptions = {}): ResolvedBodyOptions {
  checkKeys('bodies.', options, ['maxBytes', 'maxBytesPerCaller', 'stallTimeout'])
  const { maxBytes: total = '1gb', stallTimeout = '60s' } = options
  const maxBytes = checkBytes('bodies.maxBytes', total, leastBytes, Number.MAX_SAFE_INTEGER)
  const { maxBytesPerCaller = Math.floor(maxBytes / 4) } = options
  return {
    maxBytes,
    maxBytesPerTenant: checkBytes(
      'bodies.maxBytesPerCaller',
      maxBytesPerCaller,
      leastBytesPerCaller,
      Math.floor(maxBytes / 2),
    ),
    stallTimeoutMs: resolveTimeout('bodies.stallTimeout', stallTimeout),
  }
}

function checkBytes(option: string, value: ByteSize, min: number, max: number): number {
  const bytes = Math.floor(parseOption(option, () => toBytes(value)))
  if (bytes >= min && bytes <= max) return bytes
  throw new TypeError(`Expected \`${option}\` to be from ${min} to ${max} bytes, got ${describeValue(value)}`)
}
