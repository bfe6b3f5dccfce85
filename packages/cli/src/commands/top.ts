/** `modelmount top`: shows what a server does now. */
import { Command } from 'commander'
import { environmentHelp } from '../environment.ts'
import { asJson, print } from '../output.ts'
import { type Server, ServerError, withRunningServer } from '../server.ts'
import { renderPage, type ServedActivity } from '../top/page.ts'
import { redraw } from '../top/redraw.ts'
import { type HostOption, type JsonOption, portOption } from './options/client-command.ts'
import { integer } from './options/integer.ts'

interface TopOptions extends Pick<HostOption, 'host' | 'port'>, JsonOption {
  readonly interval: number
}

export const top = new Command('top')
  .description('show calls, queues and models of a server, as they change')
  .option('--host <host>', 'server to call (default: $OLLAMA_HOST, else 127.0.0.1:11434)')
  .addOption(portOption())
  .option('--interval <seconds>', 'time between two pictures in a terminal', integer(1, 3_600), 1)
  .option('--json', 'print JSON, once')
  .addHelpText('after', environmentHelp('client'))

top.action(({ json, interval, ...options }: TopOptions) =>
  withRunningServer(options, async (server) => {
    if (json) return void print(asJson(await readActivity(server)))
    const readPage = async (signal?: AbortSignal): Promise<string> =>
      renderPage(server.url, await readActivity(server, signal))
    if (process.stdout.isTTY) return redraw(readPage, interval * 1_000)
    print(await readPage())
  }),
)

async function readActivity(server: Server, signal?: AbortSignal): Promise<ServedActivity> {
  try {
    return await server.get<ServedActivity>('/admin/activity', signal)
  } catch (error) {
    if (!(error instanceof ServerError) || error.status !== 404) throw error
    throw new Error(
      `${server.url} has no route /admin/activity. It is no server of \`modelmount serve\`, or an older one.`,
    )
  }
}
