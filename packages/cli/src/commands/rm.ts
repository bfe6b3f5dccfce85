/** `modelmount rm`: unloads models and deletes them from disk. */

import { print } from '../output.ts'
import { withServer } from '../server.ts'
import { clientCommand, type HostOption } from './options/client-command.ts'
import { unload } from './stop.ts'

export const rm = clientCommand('rm <models...>', 'remove models')

rm.action((models: readonly string[], options: HostOption) =>
  withServer(options, async (server) => {
    for (const model of models) {
      // The model may be unloaded already, or broken.
      await unload(server, model).catch(() => {})
      await server.send('DELETE', '/api/delete', { body: { model } })
      print(`deleted '${model}'\n`)
    }
  }),
)
