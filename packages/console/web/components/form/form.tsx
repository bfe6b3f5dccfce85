/** Forms that send JSON to the server. */
import type { ComponentChildren } from 'preact'
import { ApiError } from '../../api/errors.ts'
import { ErrorMessage } from '../error-message.tsx'

export interface FormProps {
  readonly onSubmit: () => void
  readonly isBusy?: boolean
  readonly label?: string
  readonly children: ComponentChildren
}

export const Form = ({ onSubmit, isBusy = false, label, children }: FormProps) => (
  <form
    class="form"
    noValidate
    aria-label={label}
    onSubmit={(event) => {
      event.preventDefault()
      if (!isBusy) onSubmit()
    }}
  >
    {children}
  </form>
)

/**
 * The server's message for one field of a form, such as `limits.tokensPerMinute`. Undefined if the error is about
 * another one.
 */
export function fieldError(error: unknown, param: string): string | undefined {
  if (!(error instanceof ApiError) || error.param === undefined) return undefined
  const isFor =
    error.param === param || error.param.startsWith(`${param}.`) || error.param.startsWith(`${param}[`)
  if (!isFor) return undefined
  return error.message.startsWith(`${error.param}: `)
    ? error.message.slice(error.param.length + 2)
    : error.message
}

/** An error that none of the fields of a form shows. */
export const FormError = ({
  error,
  params,
}: {
  readonly error: unknown
  readonly params: readonly string[]
}) =>
  error == null || params.some((param) => fieldError(error, param) !== undefined) ? null : (
    <ErrorMessage error={error} />
  )
