/** `modelmount doctor`: options. */
import { Command, Option } from 'commander'
import type { DoctorOptions } from '../doctor/doctor.ts'
import { environmentHelp } from '../environment.ts'
import { parseHost } from '../host.ts'
import { dataOption } from './options/data-option.ts'
import { integer } from './options/integer.ts'

const another = (text: string, before: readonly string[] = []): readonly string[] => [...before, text]

export const doctor = new Command('doctor')
  .description('check this machine and the options of serve; exit code 1 if there are problems')
  .option('--config <file>', 'file with options, as for serve')
  .option('--models <folder>', 'folder with GGUF files (default: $OLLAMA_MODELS, else ~/.ollama/models)')
  .option('--model <file>', 'one GGUF file, as for serve')
  .addOption(dataOption())
  .addOption(
    new Option(
      '--database <location>',
      'path of a database file, or postgres://… instead of --data',
    ).conflicts('data'),
  )
  .option('--host <host>', 'address on which serve shall listen (default: 127.0.0.1, or from $OLLAMA_HOST)')
  .option('--port <port>', 'port of serve (default: 11434, or from $OLLAMA_HOST)', integer(1, 65_535))
  .option('--online', 'call the registries; without it, nothing calls other machines but the database')
  .option('--registry <host>', 'registry instead of the default ones; repeatable', another)
  .option('--private-registry <host>', 'host:port of a registry at a private address; repeatable', another)
  .option('--json', 'print JSON')
  .addHelpText('after', environmentHelp('serve'))
  .action(async (options: Partial<DoctorOptions>) => {
    const { host, port } = parseHost(process.env.OLLAMA_HOST ?? '')
    // Loaded on use, so that other commands start faster.
    const { doctor: run } = await import('../doctor/doctor.ts')
    await run({ host, port, ...options })
  })
