/** All tables of Modelmount: the steps that create them, and what the database contains after a step. */
import { auditTables } from '../accounts/audit/tables.ts'
import { keyTables } from '../accounts/keys/tables.ts'
import { tenantTables } from '../accounts/tenants/tables.ts'
import { trafficTables } from '../accounts/traffic/tables.ts'
import { usageTables } from '../accounts/usage/tables.ts'
import { batchTables } from '../batches/tables.ts'
import { fleetTables } from '../engine/fleet/tables.ts'
import { limitTables } from '../limits/sql.ts'
import { responseTables } from '../response-store/tables.ts'
import { runningCallTables } from '../running-calls/tables.ts'
import type { Migration } from '../storage/migrations.ts'

/** Steps by owner. */
export const schema: Readonly<Record<string, readonly Migration[]>> = {
  audit: auditTables,
  batches: batchTables,
  fleets: fleetTables,
  keys: keyTables,
  limits: limitTables,
  responses: responseTables,
  'running-calls': runningCallTables,
  tenants: tenantTables,
  traffic: trafficTables,
  usage: usageTables,
}

/** Owners whose tables only some apps have: those that open them by themselves. */
export const optionalOwners: ReadonlySet<string> = new Set(['fleets'])

export interface Contents {
  readonly tables: ReadonlySet<string>
  readonly indexes: ReadonlySet<string>
  readonly references: readonly Reference[]
}

/** A column whose values are keys of another table. */
export interface Reference {
  readonly table: string
  readonly column: string
  readonly parent: string
  readonly parentColumn: string
}

/** Returns what the given steps of one owner create, according to their statements. */
export function contentsAfter(steps: readonly Migration[]): Contents {
  const tables = new Set<string>()
  const indexes = new Set<string>()
  const references: Reference[] = []
  for (const statement of steps.flat()) {
    const [, table = ''] = /^CREATE TABLE (\w+)/.exec(statement) ?? []
    const [, index] = /^CREATE (?:UNIQUE )?INDEX (\w+)/.exec(statement) ?? []
    const [, kind, dropped = ''] = /^DROP (TABLE|INDEX) (?:IF EXISTS )?(\w+)/.exec(statement) ?? []
    if (table) tables.add(table)
    if (index) indexes.add(index)
    if (kind) (kind === 'TABLE' ? tables : indexes).delete(dropped)
    for (const [, column = '', parent = '', parentColumn = ''] of statement.matchAll(referencing))
      references.push({ table, column, parent, parentColumn })
  }
  return { tables, indexes, references: references.filter(({ table }) => tables.has(table)) }
}

const referencing = /(\w+) [A-Z ]+ REFERENCES (\w+) \((\w+)\)/g
