/** The console: its pages, for the viewer's scopes. */
import { QueryClientProvider } from '@tanstack/preact-query'
import { Suspense } from 'preact/compat'
import { Redirect, Route, Router, Switch, useLocation } from 'wouter-preact'
import { createQueryClient } from './api/query-client.ts'
import { SessionProvider, useSession, useSessionQuery } from './api/session.ts'
import { EmptyState, Loading, NeedsDatabase } from './components/empty-state.tsx'
import { ErrorMessage } from './components/error-message.tsx'
import { useFragmentPath, useFragmentQuery } from './components/location.ts'
import { Notices } from './components/notices.tsx'
import { Page } from './components/page.tsx'
import { ErrorBoundary } from './shell/error-boundary.tsx'
import { Login } from './shell/login.tsx'
import { homeFor, type PageEntry, pages, pagesFor } from './shell/pages.ts'
import { Shell } from './shell/shell.tsx'

const client = createQueryClient()

export const App = ({ token }: { readonly token: string | undefined }) => (
  <QueryClientProvider client={client}>
    <Router hook={useFragmentPath} searchHook={useFragmentQuery}>
      <Notices>
        <SessionGate token={token} />
      </Notices>
    </Router>
  </QueryClientProvider>
)

function SessionGate({ token }: { readonly token: string | undefined }) {
  const session = useSessionQuery()
  if (session.data && 'session' in session.data) {
    return (
      <SessionProvider value={session.data.session}>
        <Shell>
          <Content />
        </Shell>
      </SessionProvider>
    )
  }
  if (session.data) return <Login token={token} {...session.data} />
  return (
    <main class="login">
      <h1 class="visually-hidden">Modelmount</h1>
      {session.error ? (
        <ErrorMessage error={session.error} onRetry={() => void session.refetch()} />
      ) : (
        <Loading />
      )}
    </main>
  )
}

function Content() {
  const session = useSession()
  const [visible, home] = [pagesFor(session), homeFor(session)]
  const [path] = useLocation()
  return (
    <ErrorBoundary resetKey={path}>
      <Suspense fallback={<Loading />}>
        <Switch>
          <Route path="/">{home ? <Redirect href={home} replace /> : <NothingToSee />}</Route>
          {visible.map((page) => (
            <Route path={`${page.path}/*?`} key={page.path}>
              <PageContent page={page} />
            </Route>
          ))}
          <Route path="/login">
            <Redirect href="/" replace />
          </Route>
          <Route>{pages.some((page) => page.path === path) ? <Forbidden /> : <Unknown />}</Route>
        </Switch>
      </Suspense>
    </ErrorBoundary>
  )
}

function PageContent({
  page: { title, component: Content, needsDatabase = true },
}: {
  readonly page: PageEntry
}) {
  const { hasDatabase } = useSession()
  if (hasDatabase || !needsDatabase) return <Content />
  return (
    <Page title={title}>
      <NeedsDatabase />
    </Page>
  )
}

const Forbidden = () => (
  <Page title="No access">
    <EmptyState title="You may not see this page" icon="keys">
      <p>Log in with a key that has the scope of this page, or ask an administrator for it.</p>
    </EmptyState>
  </Page>
)

const NothingToSee = () => (
  <Page title="No access">
    <EmptyState title="Your key has no scope that the console can use" icon="keys">
      <p>
        Log in with a key that has the scope <code>inference</code>, <code>models</code>,{' '}
        <code>admin:read</code> or <code>admin</code>.
      </p>
    </EmptyState>
  </Page>
)

const Unknown = () => (
  <Page title="Page not found">
    <EmptyState title="There is no page at this address" icon="search">
      <p>Choose a page from the navigation.</p>
    </EmptyState>
  </Page>
)
