/** Standalone GGUF files: models without a manifest, named after their files. */
import { createHash } from 'node:crypto'
import { access, constants, readdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Adapter, Model } from '../model.ts'
import { statOf } from './disk.ts'
import { parseModelName } from './name.ts'

/** A folder of models, or one GGUF file. */
export interface ModelSource {
  readonly path: string
  /** Model name, if the source is the built-in model. */
  readonly builtInName?: string
  /** Model name of a single file. @default the file name without `.gguf` */
  readonly name?: string
  readonly adapters?: readonly AdapterFile[]
}

type AdapterFile = Pick<Adapter, 'path' | 'scale'>

/** Fields that are known before the file is read. */
export type ModelFile = Pick<Model, 'name' | 'path' | 'isBuiltIn'> & Pick<ModelSource, 'adapters'>

/** Throws a `TypeError` for a configured path or name that is invalid. */
export async function expectSource({ path, name, adapters = [] }: ModelSource): Promise<void> {
  if (name !== undefined && !parseModelName(name))
    throw new TypeError(`Expected \`models\` to contain model names, got '${name}'.`)
  await Promise.all([
    expectPath(path, name === undefined),
    ...adapters.map((one) => expectPath(one.path, false)),
  ])
}

async function expectPath(path: string, canBeFolder: boolean): Promise<void> {
  const problem = await access(path, constants.R_OK)
    .then(() => stat(path))
    .then(
      (info) => {
        if (info.isDirectory()) return canBeFolder ? undefined : 'is a folder'
        return path.endsWith('.gguf') ? undefined : 'is neither'
      },
      (error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? 'does not exist' : 'cannot be read'),
    )
  if (problem)
    throw new TypeError(`Expected \`models\` to be a folder or a GGUF file, but ${path} ${problem}.`)
}

/** Whether the source is a folder. The folder need not exist yet. */
export const isModelFolder = ({ path, builtInName, name }: ModelSource): boolean =>
  builtInName === undefined && name === undefined && !path.endsWith('.gguf')

export async function listModelFiles({
  path,
  builtInName,
  name,
  adapters,
}: ModelSource): Promise<readonly ModelFile[]> {
  if ((await statOf(path))?.isFile()) {
    const file = {
      name: withTag(builtInName ?? name ?? stemOf(path)),
      path,
      isBuiltIn: builtInName !== undefined,
    }
    return [adapters ? { ...file, adapters } : file]
  }
  const files = await readdir(path).catch(() => [])
  return files
    .filter(isModelFile)
    .map((file) => ({ name: withTag(stemOf(file)), path: join(path, file), isBuiltIn: false }))
}

/** Returns `undefined` if the file is missing. */
export async function toModel({ adapters: adapterFiles, ...file }: ModelFile): Promise<Model | undefined> {
  const info = await statOf(file.path)
  if (!info?.isFile()) return undefined
  const { size: sizeBytes, mtime: modifiedAt, mtimeMs } = info
  const adapters = adapterFiles && (await Promise.all(adapterFiles.map(toAdapter)))
  const parts = [file.path, sizeBytes, mtimeMs, ...(adapters ? [JSON.stringify(adapters)] : [])]
  const digest = createHash('sha256').update(parts.join('\0')).digest('hex')
  return { ...file, sizeBytes, modifiedAt, digest, ...(adapters && { adapters }) }
}

/** Accepts a missing file of a LoRA adapter, which `checkModel` reports later. */
async function toAdapter(file: AdapterFile): Promise<Adapter> {
  const { size: sizeBytes = 0, mtime: modifiedAt = new Date(0) } = (await statOf(file.path)) ?? {}
  return { ...file, sizeBytes, modifiedAt }
}

/** Excludes projectors. Of a split model, includes the first file only. */
const isModelFile = (file: string): boolean =>
  file.endsWith('.gguf') && !file.startsWith('mmproj') && !/-(?!00001)\d{5}-of-\d{5}\.gguf$/.test(file)

const stemOf = (path: string): string => basename(path, '.gguf').replace(/-00001-of-\d{5}$/, '')

export const withTag = (name: string): string => (name.includes(':') ? name : `${name}:latest`)
