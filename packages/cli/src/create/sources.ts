/**
 * Finds the sources that FROM and ADAPTER name: files on this machine, blobs of the server, or a model that
 * the server has or can pull.
 */
import { stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { type Modelfile, parseDigest } from '@modelmount/core/models'

/** Maps file names to paths, or to digests of blobs on the server. */
type Files = Readonly<Record<string, string>>

export interface Sources {
  readonly model?: string
  readonly files: Files
  readonly adapters: Files
}

/** @param folder the folder of the Modelfile, where relative paths start */
export async function findSources(
  { from, adapter }: Pick<Modelfile, 'from' | 'adapter'>,
  folder: string,
): Promise<Sources> {
  const found = await Promise.all(from.map((name) => fileOf('FROM', name, folder)))
  const paths = found.filter((path) => path !== undefined)
  const adapterPath = adapter && (await fileOf('ADAPTER', adapter, folder))
  if (adapter && !adapterPath) throw new Error(`ADAPTER ${adapter} does not exist`)
  const [model] = from
  if (model === undefined || paths.length === from.length)
    return { files: byName(paths), adapters: byName(adapterPath ? [adapterPath] : []) }
  if (from.length > 1) throw new Error('FROM: expected one model, or files only')
  return { model, files: {}, adapters: byName(adapterPath ? [adapterPath] : []) }
}

/** Returns a path or a digest, or undefined when `name` is the name of a model. */
async function fileOf(command: string, name: string, folder: string): Promise<string | undefined> {
  const path = resolve(folder, name.replace(/^~(?=$|[\\/])/, homedir()))
  const info = await stat(path).catch(() => undefined)
  if (info?.isFile()) return path
  if (info)
    throw new Error(
      `${command} ${name} is a folder: expected a GGUF file. Convert Safetensors with llama.cpp's convert_hf_to_gguf.py first.`,
    )
  if (/^[.~\\/]|\.gguf$/i.test(name)) throw new Error(`${command} ${name} does not exist`)
  return parseDigest(name)
}

/** Indexes paths by file name. Further files with the same name get a prefix: `1/model.gguf`. */
const byName = (paths: readonly string[]): Files =>
  Object.fromEntries(
    paths.map((path, index) => {
      const isFirst = paths.findIndex((other) => basename(other) === basename(path)) === index
      return [isFirst ? basename(path) : join(String(index), basename(path)), path]
    }),
  )
