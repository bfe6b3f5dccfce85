/** What the commands have in common that speak to a server. */
import { Command } from 'commander'
import type { Server, ServerOptions } from '../server.ts'

export type HostOption = Pick<ServerOptions, 'host' | 'server'>

/** @param usage its name and arguments */
export function clientCommand(usage: string, description: string): Command {
  const [name = '', ...words] = usage.split(' ')
  const command = new Command(name)
    .description(description)
    .option(
      '--host <host>',
      'the server to ask (default: $OLLAMA_HOST, else the one that listens, else none)',
    )
    .option('--no-server', 'ask none, even where one listens')
  for (const word of words) command.argument(word)
  return command
}

/** The registry of a name that has one: `localhost:5000` of `localhost:5000/library/tiny`. */
export const registryOf = (model: string): string | undefined =>
  /^(?:\w+:\/\/)?([^/]+)\/[^/]+\/[^/]+$/.exec(model)?.[1]

/** Without a server, what is loaded is known to the apps that have loaded it, and not here. */
export function noteIfAlone(server: Server): void {
  if (server.isOwn)
    process.stderr.write('No server was asked: what is loaded, only the apps know that have loaded it.\n')
}
