/** The work of `modelmount create`. */
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { parseModelfile } from '@modelmount/core/models'
import { type HostOption, registryOf } from '../commands/options/client-command.ts'
import { type ProgressLine, showProgress } from '../format/progress.ts'
import { type Server, withServer } from '../server.ts'
import { findSources } from './sources.ts'
import { upload } from './upload.ts'

export interface CreateOptions extends HostOption {
  readonly file: string
  readonly quantize?: string
}

export async function createFromModelfile(
  name: string,
  { file, quantize, ...options }: CreateOptions,
): Promise<void> {
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
  await withServer({ ...options, registry: model && registryOf(model) }, async (server) => {
    if (quantize !== undefined && (await isModelmount(server))) throw cannotQuantize()
    await showProgress(createModel(server), process.stdout)
  })
}

const isModelmount = async (server: Server): Promise<boolean> =>
  server.isOwn || (await (await server.send('GET', '/v1/models')).text()).includes('"owned_by":"modelmount"')

/** Thrown before the upload, which can take minutes. */
const cannotQuantize = (): Error =>
  new Error(
    '--quantize: Modelmount cannot quantize, because node-llama-cpp has no quantizer. Quantize the file with llama-quantize of llama.cpp, and create the model from the result.',
  )

const bytesOf = (file: string): Promise<Buffer> => (file === '-' ? buffer(process.stdin) : fileBytes(file))

const fileBytes = (file: string): Promise<Buffer> =>
  readFile(file).catch((cause: NodeJS.ErrnoException) => {
    const reason = cause.code === 'ENOENT' ? 'does not exist' : `cannot be read (${cause.code})`
    throw new Error(`the Modelfile ${file} ${reason}`, { cause })
  })
