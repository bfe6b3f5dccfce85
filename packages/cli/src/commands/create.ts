/** `modelmount create`: creates a model from a Modelfile and the files that it names. */
import type { CreateOptions } from '../create/create.ts'
import { clientCommand } from './options/client-command.ts'

export const create = clientCommand('create <model>', 'create a model from a Modelfile')
  .option('-f, --file <file>', 'the Modelfile; - reads stdin', 'Modelfile')
  .option(
    '-q, --quantize <type>',
    'quantize the weights to this type, such as q4_K_M; only an Ollama server can',
  )
  // Loaded on use, so that other commands start faster.
  .action(async (name: string, options: CreateOptions) =>
    (await import('../create/create.ts')).createFromModelfile(name, options),
  )
