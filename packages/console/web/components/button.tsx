/** Buttons, and links that look like buttons. */
import type { ButtonHTMLAttributes, ComponentChildren } from 'preact'
import { Link } from 'wouter-preact'
import { Icon, type IconName } from './icon.tsx'

export interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'icon'> {
  /** @default 'secondary' */
  readonly kind?: 'primary' | 'secondary' | 'danger' | 'plain'
  readonly icon?: IconName
  /** Whether the action runs. The button stays focusable, and ignores clicks. */
  readonly isBusy?: boolean
  readonly isSmall?: boolean
  readonly children: ComponentChildren
}

export function Button({
  kind = 'secondary',
  icon,
  isBusy = false,
  isSmall,
  onClick,
  ...props
}: ButtonProps) {
  const { children, type = 'button', ...rest } = props
  return (
    <button
      {...rest}
      type={type}
      class={`button ${kind}${isSmall ? ' small' : ''}`}
      aria-disabled={isBusy || undefined}
      onClick={(event) => {
        if (isBusy) event.preventDefault()
        else onClick?.(event)
      }}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  )
}

export const ButtonLink = ({
  href,
  kind = 'secondary',
  icon,
  children,
}: Pick<ButtonProps, 'kind' | 'icon' | 'children'> & { readonly href: string }) => (
  <Link href={href} class={`button ${kind}`}>
    {icon && <Icon name={icon} />}
    {children}
  </Link>
)
