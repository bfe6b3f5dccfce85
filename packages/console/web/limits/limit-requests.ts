/** Requests for higher limits. */
import { admin, read } from '../api/client.ts'
import type { BodyOf, LimitRequest } from '../api/types.ts'
import type { PageQuery } from '../components/table/use-pages.ts'
import { listLimits } from './limit-names.ts'
import { describeSpendingLimit } from './spending-text.ts'

export const limitRequestsKey = ['limit-requests'] as const

/** Both sides see what the other one does, while their tabs are visible. */
export const requestsRefreshMs = 15_000

export function decide(id: string, kind: 'approve' | 'refuse', note: string): Promise<LimitRequest> {
  const call = { params: { path: { id } }, body: note.trim() === '' ? {} : { note: note.trim() } }
  return kind === 'approve'
    ? read(admin.POST('/limit-requests/{id}/approve', call))
    : read(admin.POST('/limit-requests/{id}/refuse', call))
}

export const askForLimits = (body: BodyOf<'createLimitRequest'>): Promise<LimitRequest> =>
  read(admin.POST('/limit-requests', { body }))

/** What a request asks for, as name and value. */
export const listRequested = ({
  limits,
  spendingLimit,
}: LimitRequest): readonly (readonly [name: string, value: string])[] => [
  ...(spendingLimit ? [['Spending limit', describeSpendingLimit(spendingLimit)] as const] : []),
  ...listLimits(limits),
]

export const listLimitRequests = (
  page: PageQuery,
  status: LimitRequest['status'] | undefined,
  signal: AbortSignal,
) => read(admin.GET('/limit-requests', { params: { query: { ...page, ...(status && { status }) } }, signal }))
