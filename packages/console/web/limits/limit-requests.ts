/** Requests for higher limits. */
import { admin, read, request } from '../api/client.ts'
import type { LimitRequest, Limits } from '../api/types.ts'
import type { PageQuery } from '../components/table/use-pages.ts'

export const limitRequestsKey = ['limit-requests'] as const

export const decide = (id: string, decision: 'approve' | 'refuse', note: string): Promise<Response> =>
  request(`admin/limit-requests/${encodeURIComponent(id)}/${decision}`, {
    json: note.trim() === '' ? {} : { note: note.trim() },
  })

export const askForLimits = (limits: Limits, reason: string): Promise<LimitRequest> =>
  read(
    admin.POST('/limit-requests', {
      body: { limits, ...(reason.trim() !== '' && { reason: reason.trim() }) },
    }),
  )

export const listLimitRequests = (
  page: PageQuery,
  status: LimitRequest['status'] | undefined,
  signal: AbortSignal,
) => read(admin.GET('/limit-requests', { params: { query: { ...page, ...(status && { status }) } }, signal }))
