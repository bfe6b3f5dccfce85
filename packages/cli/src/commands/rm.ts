/** `modelmount rm`: models go from the disk, and from memory. */

import { print } from '../output.ts'
import { withServer } from '../server.ts'
import { clientCommand, type HostOption } from './command.ts'
import { unload } from './stop.ts'

export const rm = clientCommand('rm <models...>', 'remove models')

rm.action((models: readonly string[], options: HostOption) =>
  withServer(options, async (server) => {
    for (const model of models) {
      // Whether it was loaded, or can be, does not matter any more.
      await unload(server, model).catch(() => {})
      await server.send('DELETE', '/api/delete', { body: { model } })
      print(`deleted '${model}'\n`)
    }
  }),
)
