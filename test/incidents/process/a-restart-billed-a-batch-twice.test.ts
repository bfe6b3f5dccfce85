/**
 * E-7: a batch was charged again after a restart. The result of an item and its charge must be written together, since
 * the app can be killed at any moment.
 */
import { join } from 'node:path'
import { test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { runKilledBatches } from '../../support/killed-batches.ts'
import { times } from '../../support/scale.ts'

const kills = times(50, 4)
const items = times(500, 40)
const folder = emptyFolder()

test(`${kills} kills of the app during a batch of ${items} items: each item has one result, and is charged once`, {
  timeout: 900_000,
}, async ({ task }) => {
  const location = join(folder, 'modelmount.db')

  const batches = await runKilledBatches(location, { items, apps: 1, appKills: kills, modelKills: 0 })

  task.meta.report = await batches.expectBilledOnce()
})
