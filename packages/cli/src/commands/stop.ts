/** `modelmount stop`: a model goes from memory. */
import { type Server, ServerError, withServer } from '../server.ts'
import { clientCommand, type HostOption, noteIfAlone } from './command.ts'

export const stop = clientCommand('stop <model>', 'free the memory of a model')

stop.action((model: string, options: HostOption) =>
  withServer(options, async (server) => {
    await unload(server, model).catch((cause) => {
      const isMissing = cause instanceof ServerError && cause.status === 404
      throw isMissing ? new Error(`couldn't find model "${model}" to stop`) : cause
    })
    noteIfAlone(server)
  }),
)

/** When its running answers have ended. */
export const unload = (server: Server, model: string): Promise<unknown> =>
  server.post('/api/generate', { model, keep_alive: 0 })
