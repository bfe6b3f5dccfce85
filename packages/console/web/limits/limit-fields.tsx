/** Fields for limits. */
import { TextField } from '../components/form/field.tsx'
import { endUserLimitPaths, type LimitTexts, ownLimitPaths } from './limit-form.ts'
import { type LimitName, limitNames } from './limit-names.ts'

export interface LimitFieldsProps {
  readonly texts: LimitTexts
  readonly onChange: (texts: LimitTexts) => void
  /** Message for a path, such as `perEndUser.concurrent`. */
  readonly errorOf: (path: string) => string | undefined
  /** @default the limits of all calls together */
  readonly isPerEndUser?: boolean
  /** Text of an empty field. @default `No limit` */
  readonly placeholder?: string
  /** The limits of all calls together that are shown. @default all */
  readonly names?: readonly LimitName[]
  /** Text below a field. @default none */
  readonly hintOf?: (name: LimitName) => string
}

export const LimitFields = ({
  texts,
  onChange,
  errorOf,
  isPerEndUser = false,
  placeholder = 'No limit',
  names = ownLimitPaths,
  hintOf,
}: LimitFieldsProps) => (
  <div class="form-row">
    {(isPerEndUser ? endUserLimitPaths : names).map((path) => {
      const name = path.replace('perEndUser.', '') as LimitName
      return (
        <TextField
          key={path}
          label={limitNames[name]}
          inputMode="numeric"
          placeholder={placeholder}
          hint={hintOf?.(name)}
          value={texts[path] ?? ''}
          onChange={(text) => onChange({ ...texts, [path]: text })}
          error={errorOf(path)}
        />
      )
    })}
  </div>
)
