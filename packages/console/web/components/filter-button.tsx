/** A filter that another place of the page has set, such as a row of a table. */
import { Button } from './button.tsx'

export interface FilterButtonProps {
  /** Such as `Model`. */
  readonly name: string
  /** Empty for no filter. */
  readonly value: string
  /** @default the value */
  readonly text?: string
  readonly onClear: () => void
}

export const FilterButton = ({ name, value, text = value, onClear }: FilterButtonProps) =>
  value === '' ? null : (
    <Button icon="close" aria-label={`Remove the filter ${name}: ${text}`} onClick={onClear}>
      {name}: {text}
    </Button>
  )
