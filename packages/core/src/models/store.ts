/** The models on disk: GGUF files in folders, files named one by one, and the built-in one. */
import type { Stats } from 'node:fs'
import { access, constants, readdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { modelNotFound } from '../errors.ts'

export interface Model {
  /** With its tag: `tiny:latest`. */
  readonly name: string
  readonly path: string
  readonly sizeBytes: number
  readonly modifiedAt: Date
  /** It came with the toolkit, and cannot be changed. */
  readonly builtIn: boolean
}

export class ModelStore {
  readonly #sources: readonly ModelSource[]

  /** @param sources where models are looked for; of two with the same name the earlier wins */
  constructor(sources: readonly ModelSource[]) {
    this.#sources = sources
  }

  /** In order of their names. Read anew each time: files come and go. */
  async list(): Promise<readonly Model[]> {
    const models = new Map<string, Model>()
    for (const source of this.#sources) {
      for (const model of await read(source)) if (!models.has(model.name)) models.set(model.name, model)
    }
    return [...models.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** `tiny` means `tiny:latest`. Throws `not_found`. */
  async get(name: string): Promise<Model> {
    const wanted = withTag(name)
    const model = (await this.list()).find((candidate) => candidate.name === wanted)
    if (!model) throw modelNotFound(name)
    return model
  }
}

/** A folder or a file. */
export interface ModelSource {
  readonly path: string
  /** The name of the built-in model; all others are named by their files' stems. */
  readonly builtInName?: string
}

/** A path that somebody has named is there, or a mistake. Throws a `TypeError`. */
export async function expectSource(path: string): Promise<void> {
  const problem = await access(path, constants.R_OK)
    .then(() => stat(path))
    .then(
      (info) => (info.isDirectory() || path.endsWith('.gguf') ? undefined : 'is neither'),
      (error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? 'does not exist' : 'cannot be read'),
    )
  if (problem)
    throw new TypeError(`Expected \`models\` to be a folder or a GGUF file, but ${path} ${problem}.`)
}

async function read({ path, builtInName }: ModelSource): Promise<readonly Model[]> {
  const info = await stat(path).catch(() => undefined)
  if (!info) return []
  if (info.isFile()) return [toModel(path, info, builtInName)]

  const files = (await readdir(path).catch(() => [])).filter(isModelFile)
  const models = await Promise.all(
    files.map(async (file) => {
      const found = await stat(join(path, file)).catch(() => undefined)
      return found?.isFile() ? [toModel(join(path, file), found)] : []
    }),
  )
  return models.flat()
}

const toModel = (path: string, info: Stats, builtInName?: string): Model => ({
  name: withTag(builtInName ?? stem(path)),
  path,
  sizeBytes: info.size,
  modifiedAt: info.mtime,
  builtIn: builtInName !== undefined,
})

/** Of a model in several files the first stands for all; a projector is no model of its own. */
const isModelFile = (file: string): boolean =>
  file.endsWith('.gguf') && !file.startsWith('mmproj') && !/-(?!00001)\d{5}-of-\d{5}\.gguf$/.test(file)

const stem = (path: string): string => basename(path, '.gguf').replace(/-00001-of-\d{5}$/, '')

const withTag = (name: string): string => (name.includes(':') ? name : `${name}:latest`)
