/** Renders the list of all options in docs/reference/options.md, from the comments of their types. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { createProgram, entryPoints, exportedNames, isOurs } from '../api/entry-points.ts'
import { root } from '../packaging/npm.ts'
import { code, table } from './table.ts'

export const optionsFile = 'docs/reference/options.md'

const [begin, end] = ['<!-- written by test/reference -->\n\n', '\n\n<!-- end -->']

/** Returns the page with a list of the options that exist. The text around the list stays as it is. */
export function renderOptionsPage(): string {
  const text = readFileSync(join(root, optionsFile), 'utf8')
  const [before, rest] = text.split(begin)
  const [, after] = rest?.split(end) ?? []
  if (after === undefined) throw new Error(`${optionsFile} has no place for the list of options`)
  return `${before}${begin}${renderOptions()}${end}${after}`
}

function renderOptions(): string {
  const [entry] = entryPoints.filter(({ name }) => name === '@modelmount/core')
  if (!entry) throw new Error('no entry point of core')
  const program = createProgram([entry.types])
  const checker = program.getTypeChecker()
  const options = exportedNames(program, new Map([[entry, entry.types]])).find(
    ({ name }) => name === 'LlmOptions',
  )
  if (!options) throw new Error('LlmOptions is not exported')
  const type = checker.getDeclaredTypeOfSymbol(options.symbol)
  return table(['option', 'default', 'meaning'], ...rowsOf(checker, type, ''))
}

/** A row for each property of a type of options, and below it those of its groups. */
function rowsOf(checker: ts.TypeChecker, type: ts.Type, prefix: string): readonly (readonly string[])[] {
  return checker.getPropertiesOfType(type).flatMap((property) => {
    const path = `${prefix}${property.name}`
    const group = groupOf(checker, property)
    return group
      ? rowsOf(checker, group, `${path}.`)
      : [[code(path), defaultOf(property, checker), meaningOf(property, checker)]]
  })
}

/** The type of a group of options, such as `local`. */
function groupOf(checker: ts.TypeChecker, property: ts.Symbol): ts.Type | undefined {
  const [declaration] = property.declarations ?? []
  if (!declaration) return undefined
  const type = checker.getNonNullableType(checker.getTypeOfSymbolAtLocation(property, declaration))
  const name = (type.aliasSymbol ?? type.symbol)?.name ?? ''
  return name.endsWith('Options') && type.symbol.declarations?.some(isOurs) ? type : undefined
}

const meaningOf = (property: ts.Symbol, checker: ts.TypeChecker): string =>
  firstSentence(ts.displayPartsToString(property.getDocumentationComment(checker)))

const firstSentence = (text: string): string =>
  text.replaceAll('\n', ' ').replace(/(?<=[^.]\.) [A-Z`].*$/, '')

function defaultOf(property: ts.Symbol, checker: ts.TypeChecker): string {
  const tag = property.getJsDocTags(checker).find(({ name }) => name === 'default')
  if (!tag) throw new Error(`The comment of the option ${property.name} has no @default.`)
  return ts.displayPartsToString(tag.text).replaceAll('\n', ' ')
}
