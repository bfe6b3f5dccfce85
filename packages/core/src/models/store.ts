/** The models on disk: GGUF files in folders, files named one by one, and the built-in one. */
import { createHash } from 'node:crypto'
import type { Stats } from 'node:fs'
import { access, constants, readdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { modelNotFound } from '../errors.ts'
import type { Adapter } from './adapter.ts'
import { checkModel } from './check.ts'
import { type ModelDetails, readDetails } from './details.ts'
import { FileCache } from './file-cache.ts'
import type { GgufOptions } from './gguf.ts'
import type { ModelConfig } from './manifest.ts'
import { nameKey, parseModelName } from './name.ts'
import type { Recipe } from './recipe.ts'

export interface Model {
  /** With its tag: `tiny:latest`. */
  readonly name: string
  readonly path: string
  readonly sizeBytes: number
  readonly modifiedAt: Date
  /**
   * 64 hexadecimal digits that change with the file and its adapters. Of path, size and date, not of its bytes:
   * a file that lies alone has no manifest, and gigabytes would have to be read for a list.
   */
  readonly digest: string
  /** It came with the toolkit, and cannot be changed. */
  readonly builtIn: boolean
  /** What is added to its weights, where it was given with some. */
  readonly adapters?: readonly Adapter[]
  /** What a Modelfile says of it beside that; absent for a file that lies alone. */
  readonly recipe?: Recipe
  readonly config?: ModelConfig
  /** The model that it was made from. */
  readonly parent?: string
}

export class ModelStore {
  readonly #sources: readonly ModelSource[]
  readonly #details = new FileCache((model) => readDetails(model))
  readonly #checks = new FileCache(checkModel)

  /** @param sources where models are looked for; of two with the same name the earlier wins */
  constructor(sources: readonly ModelSource[]) {
    this.#sources = sources
  }

  /** In order of their names. Read anew each time: files come and go. */
  async list(): Promise<readonly Model[]> {
    const models = new Map<string, Model>()
    for (const model of await Promise.all((await this.#files()).map(toModel)))
      if (model && !models.has(model.name)) models.set(model.name, model)
    return [...models.values()].sort(byName)
  }

  /**
   * `tiny` means `tiny:latest`, and so do `Tiny` and `registry.ollama.ai/library/tiny` where no model
   * is named just so. Throws `not_found`.
   */
  async get(name: string): Promise<Model> {
    const files = await this.#files()
    const listed = withTag(name)
    const key = keyOf(name)
    // Only what could be meant is looked at: this is on the road of every call, and there may be many files.
    const model =
      (await firstOf(files.filter((file) => file.name === listed))) ??
      (key && (await firstOf(files.filter((file) => keyOf(file.name) === key).sort(byName))))
    if (model) return model
    throw modelNotFound(name)
  }

  /** What a model is and can do. Throws `not_found`, and `upstream` when its file cannot be used. */
  async details(
    which: string | Model,
    { arrays = false }: Pick<GgufOptions, 'arrays'> = {},
  ): Promise<ModelDetails> {
    const model = typeof which === 'string' ? await this.get(which) : which
    // A vocabulary is megabytes, and seldom asked for.
    return arrays ? readDetails(model, { arrays }) : this.#details.get(model)
  }

  /** Throws `upstream`, with what is wrong, for a file that is damaged or would end the engine. */
  check(model: Model): Promise<void> {
    return this.#checks.get(model)
  }

  async #files(): Promise<readonly ModelFile[]> {
    return (await Promise.all(this.#sources.map(filesIn))).flat()
  }
}

export const newestFirst = (a: Model, b: Model): number => b.modifiedAt.getTime() - a.modifiedAt.getTime()

/** A folder or a file. */
export interface ModelSource {
  readonly path: string
  /** The name of the built-in model. */
  readonly builtInName?: string
  /** The name of a file with adapters; all others are named by their stems. */
  readonly name?: string
  readonly adapters?: readonly AdapterFile[]
}

type AdapterFile = Pick<Adapter, 'path' | 'scale'>

/** A path that somebody has named is there, or a mistake. Throws a `TypeError`. */
export async function expectSource({ path, name, adapters = [] }: ModelSource): Promise<void> {
  if (name !== undefined && !parseModelName(name))
    throw new TypeError(`Expected \`models\` to have names of models, but '${name}' is none.`)
  await Promise.all([
    expectPath(path, name === undefined),
    ...adapters.map((one) => expectPath(one.path, false)),
  ])
}

async function expectPath(path: string, mayBeFolder: boolean): Promise<void> {
  const problem = await access(path, constants.R_OK)
    .then(() => stat(path))
    .then(
      (info) => {
        if (info.isDirectory()) return mayBeFolder ? undefined : 'is a folder'
        return path.endsWith('.gguf') ? undefined : 'is neither'
      },
      (error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? 'does not exist' : 'cannot be read'),
    )
  if (problem)
    throw new TypeError(`Expected \`models\` to be a folder or a GGUF file, but ${path} ${problem}.`)
}

/** What is known of a model without a look at its file. */
type ModelFile = Pick<Model, 'name' | 'path' | 'builtIn'> & Pick<ModelSource, 'adapters'>

async function filesIn({ path, builtInName, name, adapters }: ModelSource): Promise<readonly ModelFile[]> {
  if ((await statOf(path))?.isFile()) {
    const file = {
      name: withTag(builtInName ?? name ?? stem(path)),
      path,
      builtIn: builtInName !== undefined,
    }
    return [adapters ? { ...file, adapters } : file]
  }
  const files = await readdir(path).catch(() => [])
  return files
    .filter(isModelFile)
    .map((file) => ({ name: withTag(stem(file)), path: join(path, file), builtIn: false }))
}

/** Nothing where it is no file, or is gone. */
async function toModel({ adapters: adapterFiles, ...file }: ModelFile): Promise<Model | undefined> {
  const info = await statOf(file.path)
  if (!info?.isFile()) return undefined
  const { size: sizeBytes, mtime: modifiedAt, mtimeMs } = info
  const adapters = adapterFiles && (await Promise.all(adapterFiles.map(toAdapter)))
  const parts = [file.path, sizeBytes, mtimeMs, ...(adapters ? [JSON.stringify(adapters)] : [])]
  const digest = createHash('sha256').update(parts.join('\0')).digest('hex')
  return { ...file, sizeBytes, modifiedAt, digest, ...(adapters && { adapters }) }
}

/** One that is gone is found out when the model is checked, which says so. */
async function toAdapter(file: AdapterFile): Promise<Adapter> {
  const { size: sizeBytes = 0, mtime: modifiedAt = new Date(0) } = (await statOf(file.path)) ?? {}
  return { ...file, sizeBytes, modifiedAt }
}

async function firstOf(files: readonly ModelFile[]): Promise<Model | undefined> {
  for (const file of files) {
    const model = await toModel(file)
    if (model) return model
  }
  return undefined
}

const statOf = (path: string): Promise<Stats | undefined> => stat(path).catch(() => undefined)

const byName = (a: ModelFile, b: ModelFile): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)

/** Of a model in several files the first stands for all; a projector is no model of its own. */
const isModelFile = (file: string): boolean =>
  file.endsWith('.gguf') && !file.startsWith('mmproj') && !/-(?!00001)\d{5}-of-\d{5}\.gguf$/.test(file)

const stem = (path: string): string => basename(path, '.gguf').replace(/-00001-of-\d{5}$/, '')

const withTag = (name: string): string => (name.includes(':') ? name : `${name}:latest`)

/** A file can have a name that the grammar does not know: it is found by that name only. */
function keyOf(text: string): string | undefined {
  const name = parseModelName(text)
  return name && nameKey(name)
}
