/** `modelmount pull`: pulls a model from a registry, with progress. */
import { type ProgressLine, showProgress } from '../format/progress.ts'
import { withServer } from '../server.ts'
import { clientCommand, type HostOption, registryOf } from './options/client-command.ts'

export const pull = clientCommand('pull <model>', 'pull a model from a registry').option(
  '--insecure',
  'use http instead of https; the server must list the registry as a private one',
)

pull.action((model: string, { insecure, ...options }: HostOption & { readonly insecure?: true }) =>
  withServer({ ...options, registry: registryOf(model) }, (server) =>
    showProgress(server.stream<ProgressLine>('/api/pull', { model, insecure }), process.stdout),
  ),
)
