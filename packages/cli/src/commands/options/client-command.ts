/** Common options of commands that call a server. */
import { Command, Option } from 'commander'
import { environmentHelp } from '../../environment.ts'
import type { Server, ServerOptions } from '../../server.ts'
import { integer } from './integer.ts'

export interface JsonOption {
  readonly json?: true
}

export type HostOption = Pick<ServerOptions, 'host' | 'port' | 'server'>

/** @param usage name and arguments, such as `cp <source> <destination>` */
export function clientCommand(usage: string, description: string): Command {
  const [name = '', ...words] = usage.split(' ')
  const command = new Command(name)
    .description(description)
    .option(
      '--host <host>',
      'server to call (default: $OLLAMA_HOST, else a running server, else this process)',
    )
    .addOption(portOption())
    .option('--no-server', 'run the command in this process, even if a server is running')
  for (const word of words) command.argument(word)
  return command.addHelpText('after', environmentHelp(name === 'run' ? 'run' : 'client'))
}

export const portOption = (): Option =>
  new Option('--port <port>', 'port of the server, instead of that in --host or $OLLAMA_HOST').argParser(
    integer(1, 65_535),
  )

/** The registry in a model's name: `localhost:5000` in `localhost:5000/library/tiny`. */
export const registryOf = (model: string): string | undefined =>
  /^(?:\w+:\/\/)?([^/]+)\/[^/]+\/[^/]+$/.exec(model)?.[1]

/** If the command runs without a server, prints that it cannot see the models of other processes. */
export function noteIfNoServer(server: Server): void {
  if (server.isOwn)
    process.stderr.write('No server was asked: models that apps have loaded are not listed here.\n')
}
