/** An exact amount of money. */
import { formatUsd } from '../../format/money.ts'

/** @param nanoUsd billionths of a dollar */
export const Money = ({ nanoUsd }: { readonly nanoUsd: string | bigint }) => (
  <span class="number">{formatUsd(nanoUsd)}</span>
)

/** The same for a large text: what is smaller than a cent is exact and small. */
export function LargeMoney({ nanoUsd }: { readonly nanoUsd: string | bigint }) {
  const text = formatUsd(nanoUsd)
  const end = text.indexOf('.') + 3
  return (
    <span class="number">
      {text.slice(0, end)}
      <span class="below-cent">{text.slice(end)}</span>
    </span>
  )
}
