/** `modelmount batch`: arguments and options. */
import { Command } from 'commander'
import type { BatchCommandOptions, ResultsOptions } from '../batch/actions.ts'
import { environmentHelp } from '../environment.ts'
import { portOption } from './options/client-command.ts'
import { type PageOptions, withPageOptions } from './options/page-options.ts'

/** Loaded on use, so that other commands start faster. */
const work = () => import('../batch/actions.ts')

export const batch = new Command('batch').description('run many requests in the background of a server')

batchCommand(
  'submit <file>',
  'submit a JSONL file of requests (- reads stdin), and print the id of the batch',
)
  .option('--wait', 'wait until the batch has ended, with its progress on stderr')
  .action(async (file: string, options: BatchCommandOptions) => (await work()).submit(file, options))

batchCommand('status <id>', 'show a batch')
  .option('--wait', 'wait until the batch has ended, with its progress on stderr')
  .option('--json', 'print JSON')
  .action(async (id: string, options: BatchCommandOptions) => (await work()).status(id, options))

withPageOptions(batchCommand('list', 'list the batches, newest first'), 'batch')
  .option('--json', 'print JSON')
  .action(async (options: BatchCommandOptions & PageOptions) => (await work()).list(options))

batchCommand('results <id>', 'print the results of a batch that has ended, one JSON object a line')
  .option('-o, --output <file>', 'write the results to a file')
  .option('--force', 'replace an existing file')
  .action(async (id: string, options: ResultsOptions) => (await work()).results(id, options))

batchCommand('cancel <id>', 'cancel a batch; requests that run already end').action(
  async (id: string, options: BatchCommandOptions) => (await work()).cancel(id, options),
)

batchCommand('delete <id>', 'delete a batch that has ended, and its results').action(
  async (id: string, options: BatchCommandOptions) => (await work()).deleteBatch(id, options),
)

function batchCommand(usage: string, description: string): Command {
  return batch
    .command(usage)
    .description(description)
    .option('--host <host>', 'server to call (default: $OLLAMA_HOST, else 127.0.0.1:11434)')
    .addOption(portOption())
    .addHelpText('after', environmentHelp('client'))
}
