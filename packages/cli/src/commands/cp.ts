/** `modelmount cp`: copies a model to another name. */

import { print } from '../output.ts'
import { withServer } from '../server.ts'
import { clientCommand, type HostOption } from './options/client-command.ts'

export const cp = clientCommand('cp <source> <destination>', 'copy a model')

cp.action((source: string, destination: string, options: HostOption) =>
  withServer(options, async (server) => {
    await server.send('POST', '/api/copy', { body: { source, destination } })
    print(`copied '${source}' to '${destination}'\n`)
  }),
)
