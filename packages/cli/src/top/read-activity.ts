/** Asks a server what it does now. */
import type { Activity, LiveCall } from '@modelmount/core/operations'
import { type Server, ServerError } from '../server.ts'

/** As the route sends it, with dates as text. */
export type ServedActivity = Pick<Activity, 'callCount' | 'queues'> & {
  readonly calls: readonly Omit<LiveCall, 'startedAt'>[]
  readonly models: readonly Omit<Activity['models'][number], 'expiresAt'>[]
  readonly replicas: readonly ServedReplica[]
}

export type ServedReplica = Omit<Activity['replicas'][number], 'lastFailure'> & {
  readonly lastFailure?: { readonly kind: string; readonly at: string }
}

export async function readActivity(server: Server, signal?: AbortSignal): Promise<ServedActivity> {
  try {
    return await server.get<ServedActivity>('/admin/activity', signal)
  } catch (error) {
    if (!(error instanceof ServerError) || error.status !== 404) throw error
    throw new Error(
      `${server.url} has no route /admin/activity. It is no server of \`modelmount serve\`, or an older one.`,
    )
  }
}
