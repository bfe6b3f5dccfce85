/** Implements `modelmount tenants`. It opens the database itself, so no server has to run. */
import { createLlm } from '@modelmount/core'
import { existingDatabase } from '../database.ts'
import { table } from '../format/table.ts'
import { asJson, print } from '../output.ts'
import { record } from './record.ts'

export interface TenantDeletionOptions {
  readonly usage: 'delete' | 'anonymize'
  /** The folder of the server's `modelmount.db`, or `postgres://…`. */
  readonly data?: string
  readonly json?: boolean
}

export async function deleteTenant(id: string, { usage, data, json }: TenantDeletionOptions): Promise<void> {
  const llm = await createLlm({
    ...{ auth: 'keys', database: existingDatabase(data), batches: { run: false } },
  })
  try {
    const change = { target: id, tenant: id, changes: { usage } }
    const make = () => llm.tenants.delete(id, { usage })
    const { revokedKeys, deleted } = await record(llm, 'deleteTenant', change, make)
    if (json) print(asJson({ tenant: id, revokedKeys, deleted }))
    else {
      const rows = Object.entries(deleted).map(([name, count]) => [name, `${count}`])
      print(`Deleted the tenant ${id}.\n${table([['DATA', 'DELETED'], ...rows])}`)
    }
  } finally {
    await llm.close()
  }
}
