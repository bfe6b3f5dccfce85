/** What a page shows where it has no data. */
import type { ComponentChildren } from 'preact'
import { Icon, type IconName } from './icon.tsx'

export interface EmptyStateProps {
  readonly title: string
  /** What to do to change that. */
  readonly children?: ComponentChildren
  readonly icon?: IconName
  readonly actions?: ComponentChildren
}

export const EmptyState = ({ title, children, icon, actions }: EmptyStateProps) => (
  <div class="empty">
    {icon && <Icon name={icon} />}
    <p class="empty-title">{title}</p>
    {children !== undefined && <div class="empty-text">{children}</div>}
    {actions !== undefined && <div class="actions">{actions}</div>}
  </div>
)

export const NeedsDatabase = () => (
  <EmptyState title="This page needs a database" icon="database">
    <p>
      Set the option <code>database</code> of <code>createLlm()</code>, for example to{' '}
      <code>'sqlite:./modelmount.db'</code> or to a PostgreSQL URL. The command <code>modelmount serve</code>{' '}
      takes <code>--database</code>. Models, the playground and live calls work without one.
    </p>
  </EmptyState>
)

/** Appears after a short time, so that fast answers do not flicker. */
export const Loading = ({ label = 'Loading…' }: { readonly label?: string }) => (
  <p class="loading" role="status">
    {label}
  </p>
)
