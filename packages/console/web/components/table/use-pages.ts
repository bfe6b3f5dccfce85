/** Pages of a list by keyset: `after` is the `next` of the previous page. */
import { keepPreviousData, useQuery } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'

export const pageSize = 50

/** Query of one page. */
export interface PageQuery {
  limit: number
  after?: string
}

export interface PageOf<Row> {
  readonly data: readonly Row[]
  readonly next?: string | undefined
}

/** One page of a list, and the way to the others. */
export interface Pages<Row> {
  readonly rows: readonly Row[] | undefined
  readonly error: unknown
  /** Whether the rows are those of the previous page or filter, while others are read. */
  readonly isStale: boolean
  /** From 1. */
  readonly number: number
  readonly next: (() => void) | undefined
  readonly previous: (() => void) | undefined
  readonly refetch: () => void
}

/**
 * Reads a list page by page.
 *
 * @param key identifies the list with its filters. Another key begins at its first page
 * @param fetchPage sends `page` in the query
 */
export function usePages<Row>(
  key: readonly unknown[],
  fetchPage: (call: { readonly page: PageQuery; readonly signal: AbortSignal }) => Promise<PageOf<Row>>,
  {
    refetchInterval = () => false,
  }: {
    /** When to read the page again, in ms. Hidden tabs read nothing. */
    readonly refetchInterval?: (rows: readonly Row[] | undefined) => number | false
  } = {},
): Pages<Row> {
  const listId = JSON.stringify(key)
  const [trail, setTrail] = useState<{ listId: string; afters: readonly string[] }>({ listId, afters: [] })
  const afters = trail.listId === listId ? trail.afters : []
  const after = afters.at(-1)
  const query = useQuery<PageOf<Row>>({
    queryKey: [...key, { after }],
    queryFn: ({ signal }) =>
      fetchPage({ page: { limit: pageSize, ...(after !== undefined && { after }) }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => refetchInterval(state.data?.data),
  })
  const next = query.data?.next
  return {
    rows: query.data?.data,
    error: query.error,
    isStale: query.isPlaceholderData,
    number: afters.length + 1,
    next: next === undefined ? undefined : () => setTrail({ listId, afters: [...afters, next] }),
    previous: afters.length === 0 ? undefined : () => setTrail({ listId, afters: afters.slice(0, -1) }),
    refetch: () => void query.refetch(),
  }
}
