/** Fields of forms, with label, hint and error. */
import type {
  ComponentChildren,
  InputHTMLAttributes,
  SelectHTMLAttributes,
  TextareaHTMLAttributes,
} from 'preact'
import { useId } from 'preact/hooks'

interface FieldTexts {
  readonly label: string
  readonly hint?: ComponentChildren
  /** Message about the value, such as that of the server for this field. */
  readonly error?: string | undefined
  /** Whether only screen readers read the label, as for a search field. */
  readonly isLabelHidden?: boolean
}

export interface FieldProps extends FieldTexts {
  /** Renders the control with the attributes that connect it to its texts. */
  readonly children: (control: {
    readonly id: string
    readonly 'aria-describedby': string | undefined
    readonly 'aria-invalid': true | undefined
  }) => ComponentChildren
}

export function Field({ label, hint, error, isLabelHidden, children }: FieldProps) {
  const id = useId()
  const describedBy = [hint !== undefined && `${id}-hint`, error !== undefined && `${id}-error`]
    .filter((part) => part !== false)
    .join(' ')
  return (
    <div class="field">
      <label for={id} class={isLabelHidden ? 'visually-hidden' : undefined}>
        {label}
      </label>
      {children({
        id,
        'aria-describedby': describedBy === '' ? undefined : describedBy,
        'aria-invalid': error === undefined ? undefined : true,
      })}
      {error !== undefined && (
        <p class="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
      {hint !== undefined && (
        <p class="field-hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  )
}

interface TextValue {
  readonly value: string
  readonly onChange: (value: string) => void
}

type OwnProps = keyof FieldTexts | keyof TextValue | 'children'

export const TextField = ({
  label,
  hint,
  error,
  isLabelHidden = false,
  value,
  onChange,
  ...input
}: FieldTexts & TextValue & Omit<InputHTMLAttributes<HTMLInputElement>, OwnProps>) => (
  <Field label={label} hint={hint} error={error} isLabelHidden={isLabelHidden}>
    {(control) => (
      <input
        autoComplete="off"
        {...input}
        {...control}
        value={value}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
    )}
  </Field>
)

export const TextAreaField = ({
  label,
  hint,
  error,
  isLabelHidden = false,
  value,
  onChange,
  ...area
}: FieldTexts & TextValue & Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, OwnProps>) => (
  <Field label={label} hint={hint} error={error} isLabelHidden={isLabelHidden}>
    {(control) => (
      <textarea
        rows={3}
        {...area}
        {...control}
        value={value}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
    )}
  </Field>
)

/** @param options values and their texts, in order */
export const SelectField = ({
  label,
  hint,
  error,
  isLabelHidden = false,
  value,
  onChange,
  options,
  ...select
}: FieldTexts &
  TextValue & { readonly options: readonly (readonly [value: string, text: string])[] } & Omit<
    SelectHTMLAttributes<HTMLSelectElement>,
    OwnProps
  >) => (
  <Field label={label} hint={hint} error={error} isLabelHidden={isLabelHidden}>
    {(control) => (
      <select
        {...select}
        {...control}
        value={value}
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
      >
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    )}
  </Field>
)

export interface CheckFieldProps {
  readonly label: string
  readonly hint?: string
  readonly isChecked: boolean
  readonly onChange: (isChecked: boolean) => void
}

export function CheckField({ label, hint, isChecked, onChange }: CheckFieldProps) {
  const id = useId()
  return (
    <div class="check-field">
      <input
        id={id}
        type="checkbox"
        checked={isChecked}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onChange={({ currentTarget }) => onChange(currentTarget.checked)}
      />
      <div>
        <label for={id}>{label}</label>
        {hint !== undefined && (
          <p class="field-hint" id={`${id}-hint`}>
            {hint}
          </p>
        )}
      </div>
    </div>
  )
}

/** Fields that belong together, below a legend. */
export const FieldGroup = ({
  legend,
  hint,
  children,
}: {
  readonly legend: string
  readonly hint?: ComponentChildren
  readonly children: ComponentChildren
}) => (
  <fieldset class="field-group">
    <legend>{legend}</legend>
    {hint !== undefined && <p class="field-hint">{hint}</p>}
    {children}
  </fieldset>
)
