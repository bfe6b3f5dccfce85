/** Deletes the tenant `left`. Argument: the database. */
import { createLlm } from '@modelmount/core'

const llm = await createLlm({ auth: 'keys', database: process.argv[2] })
process.stdout.write('Deleting\n')
await llm.tenants.delete('left')
await llm.close()
