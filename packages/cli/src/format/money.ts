/** Amounts in dollars, as decimal strings, since numbers are not exact for all amounts. */

/** Accepts at most 9,999,999 dollars, with at most 9 decimal places. Core enforces a lower maximum. */
export const isUsd = (text: string): boolean => /^\d{1,7}(\.\d{1,9})?$/.test(text)

/**
 * Formats an amount: `$0.10`, `$12.345`. Small numbers need `toFixed`, because JavaScript writes numbers
 * below a millionth with an exponent.
 */
export function formatUsd(usd: number | string): string {
  const text = typeof usd === 'number' && usd < 1e-6 ? usd.toFixed(9) : String(usd)
  const [whole, fraction = ''] = text.split('.')
  return `$${whole}.${fraction.replace(/0+$/, '').padEnd(2, '0')}`
}
