import { expect, test } from 'vitest'
import { openDatabase } from '../../storage/open.ts'
import { openLedger } from './ledger.ts'

test.each(['constructor', 'toString', '__proto__', 'caller', undefined])(
  'rejects a report by anything but key, tenant, model or day: %s',
  async (by) => {
    const database = await openDatabase(':memory:')
    const ledger = await openLedger(database)

    await expect(ledger.report({ by: by as 'key' }).finally(() => database.close())).rejects.toThrow(
      "Expected `by` to be 'key', 'tenant', 'model' or 'day'",
    )
  },
)
