/** Paths of manifests: `<host>/<namespace>/<model>/<tag>`. Lookups ignore case. */
import { readdir, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type ModelName, toModelName } from './name.ts'

export const manifestPath = (folder: string, { host, namespace, model, tag }: ModelName): string =>
  join(folder, host, namespace, model, tag)

/**
 * Lists the names of all manifests. Files at another depth, or with invalid names, are ignored.
 *
 * @param onUnreadable called for each folder that exists but cannot be read. The result does not contain the
 *   names in this folder
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

/** Finds all stored names that differ from the given name at most in case. */
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

/** Adopts the case of existing names, part by part. If `tiny:latest` exists, `Tiny:q4` becomes `tiny:q4`. */
export async function resolveSpelling(folder: string, name: ModelName): Promise<ModelName> {
  const parts: string[] = []
  for (const part of [name.host, name.namespace, name.model, name.tag])
    parts.push((await findIgnoringCase(join(folder, ...parts), part))[0] ?? part)
  return nameFromParts(parts) ?? name
}

/** Returns the matching file names, the exact spelling first. */
async function findIgnoringCase(folder: string, part: string): Promise<readonly string[]> {
  const files: readonly string[] = await readdir(folder).catch(() => [])
  if (files.includes(part)) return [part, ...otherSpellings(files, part)]
  return otherSpellings(files, part)
}

const otherSpellings = (files: readonly string[], part: string): readonly string[] =>
  files.filter((file) => file !== part && file.toLowerCase() === part.toLowerCase()).sort()

/** Removes the folder and its parents while they are empty, at most `depth` folders. */
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
