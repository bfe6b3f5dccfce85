/** `modelmount pull`: a model from a registry, with its progress. */
import { type ProgressLine, showProgress } from '../progress.ts'
import { withServer } from '../server.ts'
import { clientCommand, type HostOption, registryOf } from './command.ts'

export const pull = clientCommand('pull <model>', 'pull a model from a registry').option(
  '--insecure',
  'over http instead of https; the server has to know the registry as a private one',
)

pull.action((model: string, { insecure, ...options }: HostOption & { readonly insecure?: true }) =>
  withServer({ ...options, registry: registryOf(model) }, (server) =>
    showProgress(server.stream<ProgressLine>('/api/pull', { model, insecure }), process.stdout),
  ),
)
