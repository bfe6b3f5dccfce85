/** Where manifests lie: `<host>/<namespace>/<model>/<tag>`, in whatever case. */
import { readdir, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type ModelName, toModelName } from './name.ts'

export const manifestPath = (folder: string, { host, namespace, model, tag }: ModelName): string =>
  join(folder, host, namespace, model, tag)

/**
 * What does not lie four levels deep, or has no such name, is somebody else's.
 *
 * @param onUnreadable is told of each folder that is there, and cannot be read: its names are not among these
 */
export async function listNames(
  folder: string,
  onUnreadable = (): void => {},
): Promise<readonly ModelName[]> {
  const listBelow = async (parts: readonly string[]): Promise<readonly (readonly string[])[]> => {
    const files = await readdir(join(folder, ...parts)).catch(({ code }: NodeJS.ErrnoException) => {
      if (code !== 'ENOENT' && code !== 'ENOTDIR') onUnreadable()
      return []
    })
    const deeper = files.map((file) => [...parts, file])
    return parts.length === 3 ? deeper : (await Promise.all(deeper.map(listBelow))).flat()
  }
  return (await listBelow([])).flatMap((parts) => nameFromParts(parts) ?? [])
}

const nameFromParts = ([host = '', namespace = '', model = '', tag = '']: readonly string[]):
  | ModelName
  | undefined => toModelName({ host, namespace, model, tag })

/** The names in a folder that mean this one, in whatever case. */
export async function findSpellings(folder: string, name: ModelName): Promise<readonly ModelName[]> {
  let found: readonly (readonly string[])[] = [[]]
  for (const part of [name.host, name.namespace, name.model, name.tag]) {
    const next = found.map(async (parts) =>
      (await findIgnoringCase(join(folder, ...parts), part)).map((file) => [...parts, file]),
    )
    found = (await Promise.all(next)).flat()
  }
  return found.flatMap((parts) => nameFromParts(parts) ?? [])
}

/** Part by part as it is there already: `Tiny:q4` lies beside `tiny:latest`. */
export async function resolveSpelling(folder: string, name: ModelName): Promise<ModelName> {
  const parts: string[] = []
  for (const part of [name.host, name.namespace, name.model, name.tag])
    parts.push((await findIgnoringCase(join(folder, ...parts), part))[0] ?? part)
  return nameFromParts(parts) ?? name
}

/** The exact spelling first. */
async function findIgnoringCase(folder: string, part: string): Promise<readonly string[]> {
  const files: readonly string[] = await readdir(folder).catch(() => [])
  if (files.includes(part)) return [part, ...otherSpellings(files, part)]
  return otherSpellings(files, part)
}

const otherSpellings = (files: readonly string[], part: string): readonly string[] =>
  files.filter((file) => file !== part && file.toLowerCase() === part.toLowerCase()).sort()

/** Up to so many folders, from the inside. */
export async function removeEmptyFolders(folder: string, depth: number): Promise<void> {
  if (
    depth === 0 ||
    !(await rmdir(folder).then(
      () => true,
      () => false,
    ))
  )
    return
  await removeEmptyFolders(dirname(folder), depth - 1)
}
