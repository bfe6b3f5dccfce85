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
  /** Text of an empty field, by name. @default `No limit` */
  readonly placeholderOf?: (name: LimitName) => string
}

export const LimitFields = ({
  texts,
  onChange,
  errorOf,
  isPerEndUser = false,
  placeholderOf = () => 'No limit',
}: LimitFieldsProps) => (
  <div class="form-row">
    {(isPerEndUser ? endUserLimitPaths : ownLimitPaths).map((path) => {
      const name = path.replace('perEndUser.', '') as LimitName
      return (
        <TextField
          key={path}
          label={limitNames[name]}
          inputMode="numeric"
          placeholder={placeholderOf(name)}
          value={texts[path] ?? ''}
          onChange={(text) => onChange({ ...texts, [path]: text })}
          error={errorOf(path)}
        />
      )
    })}
  </div>
)
