/** Dollars as people write them, in billionths. */

/** Exact: `0.1` is 100,000,000. Nothing for what is no amount, or more than a number holds, some nine millions. */
export function toNanoUsd(text: string): number | undefined {
  const [, whole, fraction = ''] = /^(\d{1,7})(?:\.(\d{1,9}))?$/.exec(text) ?? []
  const nanoUsd = Number(whole) * 1e9 + Number(fraction.padEnd(9, '0'))
  return Number.isSafeInteger(nanoUsd) ? nanoUsd : undefined
}

/** `$0.10`, `$12.345`. */
export function fromNanoUsd(nanoUsd: number): string {
  const fraction = String(nanoUsd % 1e9)
    .padStart(9, '0')
    .replace(/0{1,7}$/, '')
  return `$${Math.floor(nanoUsd / 1e9)}.${fraction}`
}
