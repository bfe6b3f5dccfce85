/**
 * kill -9 of apps and of their model process at random moments, while they run batches. Each item then has one result,
 * and the ledger contains the cost of each result once.
 */
import { describe, test } from 'vitest'
import { databases } from '../support/databases.ts'
import { runKilledBatches } from '../support/killed-batches.ts'
import { times } from '../support/scale.ts'

/** Long and short form. */
const items = times(1_000, 60)
const kills = times(30, 3)

/**
 * Registers the test of one database.
 *
 * @param apps app processes that run the batches together
 */
export function testBatchKills(databaseName: string, apps: number): void {
  const database = databases().find(({ name }) => name === databaseName)
  describe.runIf(database)(`in ${databaseName}`, () => {
    test(`with ${apps === 1 ? 'one app' : `${apps} apps`} at a time, ${kills} kills of an app and ${kills} of a model process lose no item of ${items}, and charge none twice`, {
      timeout: 1_800_000,
    }, async ({ task }) => {
      const location = (await database?.fresh()) as string
      const plan = { items, apps, appKills: kills, modelKills: kills }

      const batches = await runKilledBatches(location, plan)

      task.meta.report = await batches.expectBilledOnce()
    })
  })
}
