/** Scopes of callers. */

export type Scope = 'inference' | 'models' | 'admin:read' | 'admin' | 'fleet'

/** Whether scopes include another one. `admin` includes `admin:read`. */
export const includesScope = (scopes: readonly Scope[], scope: Scope): boolean =>
  scopes.includes(scope) || (scope === 'admin:read' && scopes.includes('admin'))
