/** The frame of a page: title, actions, content. */
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { Link } from 'wouter-preact'

export interface PageProps {
  readonly title: string
  /** One sentence below the title. */
  readonly description?: ComponentChildren
  /** Buttons beside the title. */
  readonly actions?: ComponentChildren
  /** The page above, for a page about one entry. */
  readonly parent?: { readonly href: string; readonly title: string }
  readonly children: ComponentChildren
}

export function Page({ title, description, actions, parent, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Modelmount`
  }, [title])
  return (
    <div class="page">
      {parent && (
        <nav class="breadcrumb" aria-label="Breadcrumb">
          <Link href={parent.href}>{parent.title}</Link>
        </nav>
      )}
      <header class="page-header">
        <div class="page-heading">
          <h1>{title}</h1>
          {description !== undefined && <p class="page-description">{description}</p>}
        </div>
        {actions !== undefined && <div class="actions">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

/** A titled part of a page. */
export const Section = ({ title, description, actions, children }: Omit<PageProps, 'parent'>) => (
  <section class="section">
    <header class="section-header">
      <div>
        <h2>{title}</h2>
        {description !== undefined && <p class="muted">{description}</p>}
      </div>
      {actions !== undefined && <div class="actions">{actions}</div>}
    </header>
    {children}
  </section>
)

/** A box on the page. */
export const Card = ({ children }: { readonly children: ComponentChildren }) => (
  <div class="card">{children}</div>
)

/** Names and values, such as the settings of a key. */
export const Facts = ({ children }: { readonly children: ComponentChildren }) => (
  <dl class="facts">{children}</dl>
)

export const Fact = ({ name, children }: { readonly name: string; readonly children: ComponentChildren }) => (
  <div class="fact">
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
)

/** One number with its name. */
export const Stat = ({
  name,
  children,
  note,
}: {
  readonly name: string
  readonly children: ComponentChildren
  readonly note?: ComponentChildren
}) => (
  <div class="stat">
    <dt>{name}</dt>
    <dd>
      <span class="stat-value">{children}</span>
      {note !== undefined && <span class="stat-note">{note}</span>}
    </dd>
  </div>
)

export const Stats = ({ children }: { readonly children: ComponentChildren }) => (
  <dl class="stats">{children}</dl>
)
