/** Fields for a spending limit: an amount, and its period. */
import type { SpendingLimit } from '../api/types.ts'
import { SelectField, TextField } from '../components/form/field.tsx'

/** Texts of the form. An empty amount means no limit. */
export interface SpendingTexts {
  readonly usd: string
  readonly period: SpendingLimit['period']
}

export interface SpendingFieldsProps {
  readonly texts: SpendingTexts
  readonly onChange: (texts: SpendingTexts) => void
  readonly error: string | undefined
  readonly hint: string
  /** Text of an empty amount. */
  readonly placeholder: string
}

export const SpendingFields = ({ texts, onChange, error, hint, placeholder }: SpendingFieldsProps) => (
  <div class="form-row">
    <TextField
      label="Spending limit in dollars"
      hint={hint}
      inputMode="decimal"
      placeholder={placeholder}
      value={texts.usd}
      onChange={(usd) => onChange({ ...texts, usd })}
      error={error}
    />
    <SelectField
      label="Period"
      hint="Days and months begin at midnight, UTC."
      value={texts.period}
      onChange={(period) => onChange({ ...texts, period: period as SpendingTexts['period'] })}
      options={[
        ['day', 'Day'],
        ['month', 'Month'],
        ['lifetime', 'Lifetime of the key'],
      ]}
    />
  </div>
)
