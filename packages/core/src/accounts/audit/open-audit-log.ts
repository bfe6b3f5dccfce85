/** Opens the audit log. Its code is loaded when there is a database, so that an app without one starts faster. */
import { createAbsentDatabase } from '../../storage/absent-database.ts'
import type { Database } from '../../storage/database.ts'
import type { TenantData } from '../tenants/tenant-data.ts'
import type { AuditLog } from './audit-log.ts'

export interface OpenedAuditLog {
  readonly log: Pick<AuditLog, 'record' | 'list'>
  /** Erases tenants from the log. Empty without a database. */
  readonly data: readonly TenantData[]
}

/**
 * @param database if undefined, changes are made and not recorded
 * @param onError called when the outcome of a change cannot be written
 */
export async function openAuditLog(
  database: Database | undefined,
  onError: (cause: unknown) => void,
): Promise<OpenedAuditLog> {
  if (!database) return { log: absentLog, data: [] }
  // One after the other: Jest fails to load modules in parallel that share a file of the bundle.
  const { openLog } = await import('./audit-log.ts')
  const { AuditData } = await import('./audit-data.ts')
  return { log: await openLog(database, onError), data: [new AuditData(database)] }
}

const absentLog: OpenedAuditLog['log'] = {
  record: (_change, make) => make(),
  list: () => createAbsentDatabase('llm.audit').query(''),
}
