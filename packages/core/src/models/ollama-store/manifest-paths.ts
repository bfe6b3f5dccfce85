/** Where manifests lie: `<host>/<namespace>/<model>/<tag>`, in whatever case. */
import { readdir, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type ModelName, toModelName } from './name.ts'

export const pathOf = (folder: string, { host, namespace, model, tag }: ModelName): string =>
  join(folder, host, namespace, model, tag)

/**
 * What does not lie four levels deep, or has no such name, is somebody else's.
 *
 * @param unreadable is told of each folder that is there, and cannot be read: its names are not among these
 */
export async function namesIn(folder: string, unreadable = (): void => {}): Promise<readonly ModelName[]> {
  const below = async (parts: readonly string[]): Promise<readonly (readonly string[])[]> => {
    const files = await readdir(join(folder, ...parts)).catch(({ code }: NodeJS.ErrnoException) => {
      if (code !== 'ENOENT' && code !== 'ENOTDIR') unreadable()
      return []
    })
    const deeper = files.map((file) => [...parts, file])
    return parts.length === 3 ? deeper : (await Promise.all(deeper.map(below))).flat()
  }
  return (await below([])).flatMap((parts) => nameOf(parts) ?? [])
}

const nameOf = ([host = '', namespace = '', model = '', tag = '']: readonly string[]):
  | ModelName
  | undefined => toModelName({ host, namespace, model, tag })

/** The names in a folder that mean this one, in whatever case. */
export async function spellings(folder: string, name: ModelName): Promise<readonly ModelName[]> {
  let found: readonly (readonly string[])[] = [[]]
  for (const part of [name.host, name.namespace, name.model, name.tag]) {
    const next = found.map(async (parts) =>
      (await sameIn(join(folder, ...parts), part)).map((file) => [...parts, file]),
    )
    found = (await Promise.all(next)).flat()
  }
  return found.flatMap((parts) => nameOf(parts) ?? [])
}

/** Part by part as it is there already: `Tiny:q4` lies beside `tiny:latest`. */
export async function spelledAs(folder: string, name: ModelName): Promise<ModelName> {
  const parts: string[] = []
  for (const part of [name.host, name.namespace, name.model, name.tag])
    parts.push((await sameIn(join(folder, ...parts), part))[0] ?? part)
  return nameOf(parts) ?? name
}

/** The exact spelling first. */
async function sameIn(folder: string, part: string): Promise<readonly string[]> {
  const files: readonly string[] = await readdir(folder).catch(() => [])
  if (files.includes(part)) return [part, ...others(files, part)]
  return others(files, part)
}

const others = (files: readonly string[], part: string): readonly string[] =>
  files.filter((file) => file !== part && file.toLowerCase() === part.toLowerCase()).sort()

/** Up to so many folders, from the inside. */
export async function removeEmpty(folder: string, depth: number): Promise<void> {
  if (
    depth === 0 ||
    !(await rmdir(folder).then(
      () => true,
      () => false,
    ))
  )
    return
  await removeEmpty(dirname(folder), depth - 1)
}
