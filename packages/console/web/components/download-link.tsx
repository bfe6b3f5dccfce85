/** A link to a file of the server. */
import type { ComponentChildren } from 'preact'
import { Icon } from './icon.tsx'

export interface DownloadLinkProps {
  /** Relative to the page, such as `admin/usage.csv`. */
  readonly url: string
  readonly fileName: string
  readonly children: ComponentChildren
}

export const DownloadLink = ({ url, fileName, children }: DownloadLinkProps) => (
  <a class="button secondary" href={new URL(url, document.baseURI).href} download={fileName}>
    <Icon name="download" />
    {children}
  </a>
)
