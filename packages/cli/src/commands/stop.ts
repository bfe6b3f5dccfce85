/** `modelmount stop`: unloads a model. */
import { type Server, ServerError, withServer } from '../server.ts'
import { clientCommand, type HostOption, noteIfNoServer } from './options/client-command.ts'

export const stop = clientCommand('stop <model>', 'stop a running model')

stop.action((model: string, options: HostOption) =>
  withServer(options, async (server) => {
    await unload(server, model).catch((cause) => {
      const isMissing = cause instanceof ServerError && cause.status === 404
      throw isMissing ? new Error(`couldn't find model "${model}" to stop`) : cause
    })
    noteIfNoServer(server)
  }),
)

/** Unloads the model once its running answers have ended. */
export const unload = (server: Server, model: string): Promise<unknown> =>
  server.post('/api/generate', { model, keep_alive: 0 })
