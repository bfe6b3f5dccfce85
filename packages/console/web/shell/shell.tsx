/** What surrounds all pages: navigation, and who has logged in. */
import { useMutation } from '@tanstack/preact-query'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Link, useLocation } from 'wouter-preact'
import { useLogOut, useSession } from '../api/session.ts'
import { Button } from '../components/button.tsx'
import { Icon } from '../components/icon.tsx'
import { shortCountOf, usePendingRequests } from '../limits/pending-requests.ts'
import { type PageEntry, pagesFor } from './pages.ts'

export function Shell({ children }: { readonly children: ComponentChildren }) {
  const [path] = useLocation()
  const main = useRef<HTMLElement>(null)
  const isFirst = useRef(true)
  useEffect(() => {
    // As after loading a page: screen readers begin at the content, and it is scrolled to its beginning.
    if (isFirst.current) isFirst.current = false
    else {
      main.current?.focus({ preventScroll: true })
      scrollTo(0, 0)
    }
  }, [path])
  return (
    <div class="shell">
      {/* No link: the fragment of the address holds the location. */}
      <button type="button" class="button secondary skip-link" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <SideBar path={path} />
      <main class="main" ref={main} tabIndex={-1}>
        {children}
      </main>
    </div>
  )
}

function SideBar({ path }: { readonly path: string }) {
  const [isOpen, setIsOpen] = useState(false)
  // Another page closes the menu.
  useEffect(() => setIsOpen(false), [path])
  useEffect(() => {
    const close = ({ key }: KeyboardEvent): void => {
      if (key === 'Escape') setIsOpen(false)
    }
    addEventListener('keydown', close)
    return () => removeEventListener('keydown', close)
  }, [])
  return (
    <header class={isOpen ? 'side-bar open' : 'side-bar'}>
      <div class="brand">
        <Link href="/" class="brand-link">
          <img src="./icon.svg" alt="" width="22" height="22" />
          Modelmount
        </Link>
        <button
          type="button"
          class="icon-button menu-button"
          aria-expanded={isOpen}
          aria-controls="menu"
          aria-label="Menu"
          onClick={() => setIsOpen(!isOpen)}
        >
          <Icon name={isOpen ? 'close' : 'menu'} />
        </button>
      </div>
      <div class="menu" id="menu">
        <Navigation path={path} />
        <Viewer />
      </div>
    </header>
  )
}

function Navigation({ path }: { readonly path: string }) {
  const visible = pagesFor(useSession())
  const groups = [...new Set(visible.map(({ group }) => group))]
  return (
    <nav class="navigation" aria-label="Pages">
      {groups.map((group) => (
        <div class="navigation-group" key={group}>
          <p class="navigation-title" id={`group-${group}`}>
            {group}
          </p>
          <ul aria-labelledby={`group-${group}`}>
            {visible
              .filter((page) => page.group === group)
              .map((page) => (
                <NavigationItem key={page.path} page={page} isCurrent={isBelow(path, page.path)} />
              ))}
          </ul>
        </div>
      ))}
    </nav>
  )
}

const NavigationItem = ({ page, isCurrent }: { readonly page: PageEntry; readonly isCurrent: boolean }) => (
  <li>
    <Link href={page.path} class="navigation-link" aria-current={isCurrent ? 'page' : undefined}>
      <Icon name={page.icon} />
      {page.title}
      {page.path === '/limits' && <PendingBadge />}
    </Link>
  </li>
)

function PendingBadge() {
  const pending = usePendingRequests()
  if (pending.count === 0) return null
  return (
    <>
      {/* Separates the words for screen readers. */}{' '}
      <span class="badge warning">
        {shortCountOf(pending)}
        <span class="visually-hidden"> {pending.count === 1 ? 'pending request' : 'pending requests'}</span>
      </span>
    </>
  )
}

const isBelow = (path: string, parent: string): boolean => path === parent || path.startsWith(`${parent}/`)

function Viewer() {
  const { caller, scopes, canLogOut } = useSession()
  const logOut = useMutation({ mutationFn: useLogOut() })
  return (
    <div class="viewer">
      <p class="viewer-name" title={caller.id}>
        {caller.name ?? caller.id}
      </p>
      <p class="viewer-scopes">{scopes.join(', ')}</p>
      {canLogOut && (
        <Button kind="plain" isSmall icon="log-out" isBusy={logOut.isPending} onClick={() => logOut.mutate()}>
          Log out
        </Button>
      )}
      {logOut.error && <p role="alert">{logOut.error.message}</p>}
    </div>
  )
}
