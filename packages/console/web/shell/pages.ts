/** All pages, in the order of the navigation. */
import type { ComponentType } from 'preact'
import { lazy } from 'preact/compat'
import { includesScope, type Scope } from '../api/scopes.ts'
import type { Session } from '../api/session.ts'
import type { IconName } from '../components/icon.tsx'

export interface PageEntry {
  readonly path: string
  readonly title: string
  readonly icon: IconName
  readonly group: 'Observe' | 'Manage' | 'Use'
  /** Viewers with one of these scopes see the page. */
  readonly scopes: readonly Scope[]
  /** @default true */
  readonly needsDatabase?: boolean
  /** Also renders the paths below, such as `/keys/:id`. */
  readonly component: ComponentType
}

export const pages: readonly PageEntry[] = [
  {
    path: '/overview',
    title: 'Overview',
    icon: 'overview',
    group: 'Observe',
    scopes: ['admin:read'],
    component: lazy(() => import('../pages/overview/index.tsx')),
  },
  {
    path: '/live',
    title: 'Live calls',
    icon: 'live',
    group: 'Observe',
    scopes: ['admin:read'],
    needsDatabase: false,
    component: lazy(() => import('../pages/live/index.tsx')),
  },
  {
    path: '/usage',
    title: 'Usage',
    icon: 'usage',
    group: 'Observe',
    scopes: ['admin:read'],
    component: lazy(() => import('../pages/usage/index.tsx')),
  },
  {
    path: '/batches',
    title: 'Batches',
    icon: 'batches',
    group: 'Observe',
    scopes: ['admin:read'],
    component: lazy(() => import('../pages/batches/index.tsx')),
  },
  {
    path: '/keys',
    title: 'Keys',
    icon: 'keys',
    group: 'Manage',
    scopes: ['admin:read'],
    component: lazy(() => import('../pages/keys/index.tsx')),
  },
  {
    path: '/limits',
    title: 'Limits',
    icon: 'limits',
    group: 'Manage',
    scopes: ['admin:read'],
    component: lazy(() => import('../pages/limits/index.tsx')),
  },
  {
    path: '/models',
    title: 'Models',
    icon: 'models',
    group: 'Manage',
    scopes: ['inference', 'models'],
    needsDatabase: false,
    component: lazy(() => import('../pages/models/index.tsx')),
  },
  {
    path: '/audit',
    title: 'Audit',
    icon: 'audit',
    group: 'Manage',
    scopes: ['admin:read'],
    component: lazy(() => import('../pages/audit/index.tsx')),
  },
  {
    path: '/playground',
    title: 'Playground',
    icon: 'playground',
    group: 'Use',
    scopes: ['inference'],
    needsDatabase: false,
    component: lazy(() => import('../pages/playground/index.tsx')),
  },
  {
    path: '/my-key',
    title: 'My key',
    icon: 'my-key',
    group: 'Use',
    scopes: ['inference'],
    component: lazy(() => import('../pages/my-key/index.tsx')),
  },
]

/** The first page for a viewer: what an operator, a user or a manager of models looks for. */
export function homeFor(session: Pick<Session, 'scopes' | 'hasDatabase'>): string | undefined {
  const usable = pagesFor(session).filter(({ needsDatabase = true }) => session.hasDatabase || !needsDatabase)
  const paths = usable.map(({ path }) => path)
  return ['/overview', '/live', '/my-key', '/playground', '/models'].find((path) => paths.includes(path))
}

/** The pages that a viewer may see. */
export const pagesFor = ({ scopes }: Pick<Session, 'scopes'>): readonly PageEntry[] =>
  pages.filter((page) => page.scopes.some((scope) => includesScope(scopes, scope)))
