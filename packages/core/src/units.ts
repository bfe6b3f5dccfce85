/** Options with units: what users write, and reading it. */

/** Bytes, or a number with a unit: `'32mb'`. */
export type ByteSize = number | `${number}${'kb' | 'mb' | 'gb'}`

const byteUnits = { kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 }

export function toBytes(size: ByteSize): number {
  if (typeof size === 'number' && size >= 0 && Number.isFinite(size)) return size
  const [, amount, unit] = /^(\d+(?:\.\d+)?) ?(kb|mb|gb)$/.exec(String(size).toLowerCase()) ?? []
  if (!amount || !unit)
    throw new TypeError(`Expected a byte size such as '32mb' or a number, got '${size}' (${typeof size})`)
  return Number(amount) * byteUnits[unit as keyof typeof byteUnits]
}
