/** Creates a command that shows a part of what a server does now, again and again in a terminal. */
import { Command } from 'commander'
import { environmentHelp } from '../environment.ts'
import { asJson, print } from '../output.ts'
import { withRunningServer } from '../server.ts'
import { readActivity, type ServedActivity } from '../top/read-activity.ts'
import { redraw } from '../top/redraw.ts'
import { type HostOption, type JsonOption, portOption } from './options/client-command.ts'
import { integer } from './options/integer.ts'

interface LivePage {
  readonly description: string
  /** @param server address of the server */
  readonly render: (server: string, activity: ServedActivity) => string
  readonly toJson: (activity: ServedActivity) => object
}

interface LiveOptions extends Pick<HostOption, 'host' | 'port'>, JsonOption {
  readonly interval: number
}

export function createLiveCommand(name: string, { description, render, toJson }: LivePage): Command {
  return new Command(name)
    .description(description)
    .option('--host <host>', 'server to call (default: $OLLAMA_HOST, else 127.0.0.1:11434)')
    .addOption(portOption())
    .option('--interval <seconds>', 'time between two pictures in a terminal', integer(1, 3_600), 1)
    .option('--json', 'print JSON, once')
    .addHelpText('after', environmentHelp('client'))
    .action(({ json, interval, ...options }: LiveOptions) =>
      withRunningServer(options, async (server) => {
        if (json) return void print(asJson(toJson(await readActivity(server))))
        const readPage = async (signal?: AbortSignal): Promise<string> =>
          render(server.url, await readActivity(server, signal))
        if (process.stdout.isTTY) return redraw(readPage, interval * 1_000)
        print(await readPage())
      }),
    )
}
