/** Routes of tenants. */
import type { z } from 'zod'
import type { AdminRoute } from '../route.ts'
import { DeletedTenant, TenantDeletion } from '../schema/tenants.ts'

export const tenantRoutes: readonly AdminRoute[] = [
  {
    method: 'POST',
    path: '/tenants/:id/delete',
    name: 'deleteTenant',
    summary: 'Delete the keys, usage, prompt states and stored content of a tenant. Can be repeated.',
    body: TenantDeletion,
    isBodyOptional: true,
    canConflict: true,
    tenantOf: ({ id }) => id,
    response: DeletedTenant,
    handle: ({ llm, id, body }) => llm.tenants.delete(id, body as z.output<typeof TenantDeletion>),
  },
]
