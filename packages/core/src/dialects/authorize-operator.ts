/** Authenticates callers of routes that show the state of the app: metrics, and the details of health checks. */
import type { Access } from '../accounts/auth/access.ts'
import type { Caller } from '../accounts/auth/caller.ts'
import type { HttpRequest } from '../http/message.ts'

/**
 * Returns a caller with the scope `admin:read`. With `auth: 'anonymous'`, where nobody has this scope, any direct call from
 * this machine passes. Rejects like `access.authorize`.
 */
export const authorizeOperator = (request: HttpRequest, access: Access): Promise<Caller> =>
  access.authorize(request, access.auth === 'anonymous' ? 'inference' : 'admin:read')
