/** Finds files of packages, also for a bundle that contains this module but not those files. */
import { join } from 'node:path'

/**
 * Returns the path of an entry point, such as `@modelmount/core/sqlite-worker`. Undefined if it is not installed.
 *
 * A bundle in CommonJS has no `import.meta.url`, and in some bundles it is a path of the machine that built them. So
 * the entry point is also searched from the file that runs as the app, and from the working directory.
 */
export function findPackageFile(entryPoint: string): string | undefined {
  for (const from of [import.meta.url, process.argv[1], join(process.cwd(), 'app.js')])
    try {
      if (from) return resolveFrom(from, entryPoint)
    } catch {
      // Tries the next place.
    }
  return undefined
}

/**
 * Resolves the name of a module as `require.resolve()` in a file does. Throws if it is not installed.
 *
 * @param file absolute path or URL
 */
export const resolveFrom = (file: string, name: string): string =>
  // An imported `createRequire` would be replaced by webpack, which resolves names in the bundle.
  process.getBuiltinModule('node:module').createRequire(file).resolve(name)
