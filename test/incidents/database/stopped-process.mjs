// An app process that stops while it holds the row of a caller. Argument: the location of the database.
import { openDatabase } from '../../../packages/core/dist/storage/open.js'

const database = await openDatabase(process.argv[2])
await database.transaction(async ({ query }) => {
  await query("UPDATE modelmount_spending SET day = day WHERE caller = 'ann'")
  process.stdout.write('holds the row\n')
  process.kill(process.pid, 'SIGSTOP')
})
