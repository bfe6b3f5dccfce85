/** The caller of a call. */
import { useQuery } from '@tanstack/preact-query'
import { Link } from 'wouter-preact'
import { useSession } from '../../api/session.ts'
import { keyQuery } from '../keys/queries.ts'

export interface KeyNameProps {
  /** Id of the key. Absent for callers of the host app's own login. */
  readonly id: string | undefined
  /** Absent for the app itself. */
  readonly caller: string | undefined
}

export function KeyName({ id, caller }: KeyNameProps) {
  const { hasDatabase } = useSession()
  const found = useQuery({
    ...keyQuery(id ?? ''),
    enabled: hasDatabase && id !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  }).data
  if (id !== undefined) return <Link href={`/keys/${id}`}>{found?.name ?? id}</Link>
  return caller === undefined ? <span class="muted">The app itself</span> : <span>{caller}</span>
}
