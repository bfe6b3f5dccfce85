/** Routes of what the app does now. */
import { internals } from '../../../llm.ts'
import type { AdminRoute } from '../route.ts'
import { ActivityNow } from '../schema/activity.ts'

export const activityRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/activity',
    name: 'getActivity',
    summary: 'Get the calls that run now, the queues, the loaded models and the replicas of this process.',
    needsDatabase: false,
    response: ActivityNow,
    handle: async ({ llm }) => llm[internals].liveCalls.activity(),
  },
]
