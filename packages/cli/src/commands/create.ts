/** `modelmount create`: creates a model from a Modelfile and the files that it names. */
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { parseModelfile } from '@modelmount/core/models'
import { type ProgressLine, showProgress } from '../format/progress.ts'
import { findSources } from '../modelfile-sources.ts'
import { type Server, withServer } from '../server.ts'
import { upload } from '../upload.ts'
import { clientCommand, type HostOption, registryOf } from './command.ts'

interface CreateOptions extends HostOption {
  readonly file: string
  readonly quantize?: string
}

export const create = clientCommand('create <model>', 'create a model from a Modelfile')
  .option('-f, --file <file>', 'the Modelfile; - reads stdin', 'Modelfile')
  .option('-q, --quantize <type>', 'quantize the weights to this type, such as q4_K_M')

create.action(async (name: string, { file, quantize, ...options }: CreateOptions) => {
  const { from, adapter, draft, ignored, ...modelfile } = parseModelfile(await bytesOf(file))
  if (draft !== undefined) throw new Error('DRAFT: draft models are not supported. Remove the line.')
  for (const one of ignored) process.stderr.write(`Warning: the parameter ${one} no longer has an effect\n`)
  const { model, files, adapters } = await findSources(
    { from, ...(adapter && { adapter }) },
    dirname(resolve(file)),
  )

  async function* createModel(server: Server): AsyncGenerator<ProgressLine> {
    yield { status: 'gathering model components' }
    const digests = { files: yield* upload(server, files), adapters: yield* upload(server, adapters) }
    yield* server.stream<ProgressLine>('/api/create', {
      model: name,
      from: model,
      ...digests,
      ...modelfile,
      quantize,
    })
  }
  await withServer({ ...options, registry: model && registryOf(model) }, (server) =>
    showProgress(createModel(server), process.stdout),
  )
})

const bytesOf = (file: string): Promise<Buffer> => (file === '-' ? buffer(process.stdin) : fileBytes(file))

const fileBytes = (file: string): Promise<Buffer> =>
  readFile(file).catch((cause: NodeJS.ErrnoException) => {
    const reason = cause.code === 'ENOENT' ? 'does not exist' : `cannot be read (${cause.code})`
    throw new Error(`the Modelfile ${file} ${reason}`, { cause })
  })
