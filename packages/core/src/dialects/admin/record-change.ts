/** Records the changes of routes in the audit log. */
import { type AdminCall, type AdminRoute, scopeOf } from './route.ts'

export async function recordChange(route: AdminRoute, call: AdminCall): Promise<unknown> {
  // The change itself says what is wrong, such as an unknown id.
  const context = await route.describeBefore?.(call).catch(() => undefined)
  const { tenant } = fieldsOf(call.body)
  return call.llm.audit.record(
    {
      caller: call.caller,
      action: route.name,
      target: call.id || undefined,
      tenant: route.tenantOf?.(call) ?? tenant ?? context?.tenant,
      changes: { ...fieldsOf(call.body), ...context?.changes },
      describe: nameChanged,
      // Else keys of users could fill the log with attempts that change nothing.
      keepsFailures: scopeOf(route) === 'admin',
    },
    () => route.handle(call),
  )
}

/** Ids in the response of a route: of an entry, or of a key beside its secret. */
function nameChanged(response: unknown): Readonly<Record<'target' | 'tenant', string | undefined>> {
  const { id, tenant, key } = fieldsOf(response)
  return { target: id ?? key?.id, tenant: tenant ?? key?.tenant ?? undefined }
}

const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? value : {})

/** Settings contain `tenant: null` to remove it. */
interface Fields {
  readonly id?: string
  readonly tenant?: string | null
  readonly key?: Fields
}
