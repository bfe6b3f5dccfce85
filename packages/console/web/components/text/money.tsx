/** An exact amount of money. */
import { formatUsd } from '../../format/money.ts'

/** @param nanoUsd billionths of a dollar */
export const Money = ({ nanoUsd }: { readonly nanoUsd: string | bigint }) => (
  <span class="number">{formatUsd(nanoUsd)}</span>
)
