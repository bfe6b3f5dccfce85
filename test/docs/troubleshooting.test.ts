/** Checks that the headings of the page about errors are texts that the code prints. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { root } from '../packaging/npm.ts'

/** Stands for a value in a text. */
const gap = '…'

/** Returns the text of an expression, with `…` for each value. */
function textOf(node: ts.Node): string | undefined {
  if (ts.isStringLiteralLike(node)) return node.text
  if (ts.isTemplateExpression(node))
    return node.head.text + node.templateSpans.map(({ literal }) => gap + literal.text).join('')
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken)
    return (textOf(node.left) ?? gap) + (textOf(node.right) ?? gap)
  return undefined
}

function textsIn(file: string): readonly string[] {
  const texts: string[] = []
  const visit = (node: ts.Node): void => {
    const text = textOf(node)
    if (text !== undefined) texts.push(text)
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.ES2023))
  return texts
}

const texts = readdirSync(join(root, 'packages'))
  .map((name) => join(root, 'packages', name, 'src'))
  .filter((folder) => !folder.includes('tiny-model'))
  .flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
      .flatMap((name) => textsIn(join(folder, name))),
  )
const withoutGaps = (text: string): string => text.replaceAll(/…+/g, gap)
const printed = texts.map(withoutGaps)

/** Whether the code has the text, possibly within a longer one. The ends of the heading may be `…`. */
const isPrinted = (heading: string): boolean =>
  printed.some((text) => text.includes(heading.replaceAll(/^…|…$/g, '').trim()))

const headings = [
  ...readFileSync(join(root, 'docs/troubleshooting.md'), 'utf8').matchAll(/^### (?:`` (.*) ``|`(.*)`)$/gm),
].map(([, quoted, plain]) => quoted ?? plain ?? '')

test.each(headings)('%s', (heading) => {
  expect(isPrinted(heading)).toBe(true)
})

test('there are many, and a wrong one is found', () => {
  expect(headings.length).toBeGreaterThan(50)
  expect(isPrinted('The request body is no valid JSON.')).toBe(false)
  expect(isPrinted('The request body is larger than … kilobytes.')).toBe(false)
})
