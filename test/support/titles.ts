/** Reads the titles of the tests in a file. */
import { readFileSync } from 'node:fs'
import ts from 'typescript'

/**
 * Titles in the source of a file: those of `test(…)` and `test.each(…)(…)`, with their placeholders. In the
 * conformance suite, whose tests come from tables, also the keys of these tables. Skipped tests have no title.
 */
export function titlesIn(file: string): readonly string[] {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, false)
  const isTable = !file.endsWith('.test.ts')
  const titles: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && isTest(node.expression)) titles.push(...textOf(node.arguments[0]))
    if (isTable && ts.isPropertyAssignment(node)) titles.push(...textOf(node.name))
    ts.forEachChild(node, visit)
  }
  visit(source)
  return titles
}

/** Whether an expression is `test`, `test.each(…)`, `test.runIf(…)` and so on, but not `test.skip` or `test.todo`. */
function isTest(node: ts.Node): boolean {
  if (ts.isIdentifier(node)) return node.text === 'test'
  if (ts.isCallExpression(node)) return isTest(node.expression)
  return (
    ts.isPropertyAccessExpression(node) &&
    !/^(skip|todo|fails)$/.test(node.name.text) &&
    isTest(node.expression)
  )
}

/** The text of a string or template. A template has `…` in place of each expression. */
function textOf(node: ts.Node | undefined): readonly string[] {
  if (!node) return []
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return [node.text]
  if (!ts.isTemplateExpression(node)) return []
  return [node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join('')]
}
