/** `modelmount push`: pushes a model to a registry, with progress. */
import { type ProgressLine, showProgress } from '../format/progress.ts'
import { withServer } from '../server.ts'
import { clientCommand, type HostOption, registryOf } from './options/client-command.ts'

export const push = clientCommand('push <model>', 'push a model to a registry').option(
  '--insecure',
  'use http instead of https; the server must list the registry as a private one',
)

push.action((model: string, { insecure, ...options }: HostOption & { readonly insecure?: true }) =>
  withServer({ ...options, registry: registryOf(model) }, (server) =>
    showProgress(server.stream<ProgressLine>('/api/push', { model, insecure }), process.stdout),
  ),
)
