/** Buttons, and links that look like buttons. */
import type { ButtonHTMLAttributes, ComponentChildren } from 'preact'
import { Link } from 'wouter-preact'
import { Icon, type IconName } from './icon.tsx'

export interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'icon'> {
  /** `caution` opens a question about an action that is `danger`. @default 'secondary' */
  readonly kind?: 'primary' | 'secondary' | 'danger' | 'caution' | 'plain'
  readonly icon?: IconName
  /** Whether the action runs. The button stays focusable, and ignores clicks. */
  readonly isBusy?: boolean
  readonly isSmall?: boolean
  /** Whether only screen readers read the text. */
  readonly isTextHidden?: boolean
  readonly children: ComponentChildren
}

export function Button({ kind = 'secondary', icon, isBusy = false, isSmall = false, ...props }: ButtonProps) {
  const { children, isTextHidden = false, onClick, type = 'button', ...rest } = props
  return (
    <button
      {...rest}
      type={type}
      class={`button ${kind}${isSmall ? ' small' : ''}`}
      title={isTextHidden && typeof children === 'string' ? children : undefined}
      aria-disabled={isBusy || undefined}
      onClick={(event) => {
        if (isBusy) event.preventDefault()
        else onClick?.(event)
      }}
    >
      {icon && <Icon name={icon} />}
      {isTextHidden ? <span class="visually-hidden">{children}</span> : children}
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
