/** Renders the exported types of a package as text, so that a change of them shows up in a diff. */
import ts from 'typescript'
import { createProgram, entryPoints, exportedNames, fileOf } from './entry-points.ts'

/** Returns the report of each package that exports types, by its folder. Reads the built declarations. */
export function renderReports(): ReadonlyMap<string, string> {
  const program = createProgram(entryPoints.map(({ types }) => types))
  const folders = [...new Set(entryPoints.map(({ folder }) => folder))]
  return new Map(folders.map((folder) => [folder, renderPackage(program, folder)]))
}

function renderPackage(program: ts.Program, folder: string): string {
  const entries = entryPoints.filter((entry) => entry.folder === folder)
  const exported = new Set<ts.Symbol>()
  const sections = entries.map((entry) => {
    const names = exportedNames(program, new Map([[entry, entry.types]]))
    for (const { symbol } of names) exported.add(symbol)
    return section(
      `\`${entry.name}\``,
      names.map(({ name, symbol }) => renderName(name, symbol, folder)),
    )
  })
  const reached = reachableFrom(program, exported, folder)
  return [
    `# Exported types of ${entries[0]?.packageName}`,
    '',
    'Written by `npm run api` from the built declarations, without their comments.',
    '',
    ...sections,
    ...(reached.length === 0
      ? []
      : [
          section(
            'Not exported, but part of these types',
            reached.map((symbol) => renderName(symbol.name, symbol, folder)),
          ),
        ]),
  ].join('\n')
}

const section = (title: string, declarations: readonly string[]): string =>
  [`## ${title}`, '', '```ts', [...declarations].sort(byName).join('\n\n'), '```', ''].join('\n')

/** By the name and not by the keyword, so that a change from `interface` to `type` moves nothing. */
const byName = (one: string, other: string): number => {
  const nameOf = (text: string): string =>
    /^(?:\S+ )*?(?:class|const|function|interface|type|\{) (\w+)/.exec(text)?.[1] ?? text
  return nameOf(one) < nameOf(other) ? -1 : 1
}

const printer = ts.createPrinter({ removeComments: true })

/** Returns the declarations of a name, or where it comes from if another package declares it. */
function renderName(name: string, symbol: ts.Symbol, folder: string): string {
  const own = (symbol.declarations ?? []).filter((node) => isIn(folder, node))
  if (own.length === 0) return `export { ${name} } // of another package`
  return own
    .map((node) => printer.printNode(ts.EmitHint.Unspecified, statementOf(node), node.getSourceFile()))
    .join('\n')
}

const isIn = (folder: string, node: ts.Node): boolean => fileOf(node).startsWith(`${folder}/`)

/** The statement of a constant, which has its keyword. */
const statementOf = (node: ts.Declaration): ts.Node =>
  ts.isVariableDeclaration(node) ? node.parent.parent : node

/** The types of the package that exported declarations name, and those that these name, without exported ones. */
function reachableFrom(
  program: ts.Program,
  exported: ReadonlySet<ts.Symbol>,
  folder: string,
): readonly ts.Symbol[] {
  const checker = program.getTypeChecker()
  const reached = new Set<ts.Symbol>()

  function visit(node: ts.Node): void {
    if (ts.isIdentifier(node)) add(checker.getSymbolAtLocation(node))
    ts.forEachChild(node, visit)
  }

  function add(symbol: ts.Symbol | undefined): void {
    if (!symbol) return
    const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
    if (exported.has(target) || reached.has(target)) return
    const own = (target.declarations ?? []).filter((node) => isIn(folder, node) && isTopLevel(node))
    if (own.length === 0) return
    reached.add(target)
    own.forEach(visit)
  }

  for (const symbol of exported) symbol.declarations?.filter((node) => isIn(folder, node)).forEach(visit)
  return [...reached]
}

/** Whether a node is a declaration of a module, and neither a member nor a parameter. */
const isTopLevel = (node: ts.Declaration): boolean => ts.isSourceFile(statementOf(node).parent)
