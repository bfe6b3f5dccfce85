/** The entry points of all packages that have types, and the names that they export. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import ts from 'typescript'
import { root } from '../packaging/npm.ts'

export interface EntryPoint {
  /** Name of the package, such as `@modelmount/core`. */
  readonly packageName: string
  /** Folder of the package, such as `packages/core`. */
  readonly folder: string
  /** What apps import, such as `@modelmount/core/limits`. */
  readonly name: string
  /** File with the types, from the root of the repository: a declaration file. */
  readonly types: string
}

export interface ExportedName {
  readonly entryPoint: EntryPoint
  readonly name: string
  /** The symbol of the declaration. */
  readonly symbol: ts.Symbol
}

interface Manifest {
  readonly name: string
  readonly version: string
  readonly exports?: Readonly<Record<string, string | { readonly types: string }>>
}

export const readManifest = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))

/** All entry points with types, in the order of packages and their `exports`. */
export const entryPoints: readonly EntryPoint[] = readdirSync(join(root, 'packages')).flatMap((directory) => {
  const folder = `packages/${directory}`
  const { name, exports = {} } = readManifest(folder)
  return Object.entries(exports).flatMap(([path, files]) => {
    if (typeof files === 'string') return []
    return [{ packageName: name, folder, name: join(name, path), types: join(folder, files.types) }]
  })
})

/** The source file of a declaration file in `dist`. That of the built-in model is its own source. */
export const sourceOf = (types: string): string =>
  types.replace('/dist/', '/src/').replace(/(\/src\/.*)\.d\.ts$/, '$1.ts')

/** Whether a declaration is in one of our packages. */
export const isOurs = (node: ts.Node): boolean => fileOf(node).startsWith('packages/')

/** Path of the file of a node, from the root of the repository. */
export const fileOf = (node: ts.Node): string => relative(root, node.getSourceFile().fileName)

/**
 * @param files paths from the root of the repository
 * @param texts of files that are not on disk, by path
 */
export function createProgram(
  files: readonly string[],
  texts: Readonly<Record<string, string>> = {},
): ts.Program {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.base.json'), ts.sys.readFile)
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root)
  const settings = { ...options, composite: false, noEmit: true, experimentalDecorators: true }
  const host = ts.createCompilerHost(settings)
  const { readFile, fileExists } = host
  host.readFile = (path) => texts[relative(root, path)] ?? readFile(path)
  host.fileExists = (path) => relative(root, path) in texts || fileExists(path)
  return ts.createProgram(
    files.map((file) => join(root, file)),
    settings,
    host,
  )
}

/** The exports of entry points. `files` has the file of each of them. */
export function exportedNames(
  program: ts.Program,
  files: ReadonlyMap<EntryPoint, string>,
): readonly ExportedName[] {
  const checker = program.getTypeChecker()
  return [...files].flatMap(([entryPoint, file]) => {
    const source = program.getSourceFile(join(root, file))
    const module = source && checker.getSymbolAtLocation(source)
    if (!module) throw new Error(`${file} is not a module. Run \`npm run build\`.`)
    return checker.getExportsOfModule(module).map((symbol) => ({
      entryPoint,
      name: symbol.name,
      symbol: symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol,
    }))
  })
}
