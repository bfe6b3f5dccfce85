/**
 * Checks the types of the JavaScript and TypeScript code on all pages, in one program. Each block is a module. It also
 * has the names of `preludes/` that it does not declare. A comment above a block changes this:
 *
 * - `<!-- code: continues -->`: the block belongs to the module of the block before it.
 * - `<!-- code: koa -->`: the block has the names of Koa instead of those of Express. Likewise `fastify`, `nest`, `hono`.
 * - `<!-- code: not checked, because … -->`
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { root } from '../packaging/npm.ts'
import { type CodeBlock, codeBlocks, documentationPages } from '../support/pages.ts'

const preludes = join(root, 'test/docs/preludes')

const blocks = documentationPages
  .flatMap(codeBlocks)
  .filter(({ language }) => ['js', 'ts'].includes(language))
const isChecked = ({ mark }: CodeBlock): boolean => !mark.startsWith('not checked, because ')

/** Blocks with a mistake each. */
const wrongBlocks: readonly CodeBlock[] = [
  { line: 13, code: "const { text } = await llm.chat('Hi', { maxToken: 1 })\n" },
  { line: 15, code: 'app.use(llmRouter(llm).prefix())\n' },
  { line: 18, code: '\nconst length = app.length()\n', mark: 'continues' },
  { line: 20, code: 'unknown()\n' },
].map((block) => ({ page: 'wrong.md', language: 'js', heading: '', mark: '', ...block }))

test('the code on all pages has correct types', () => {
  const errors = findErrors([...blocks.filter(isChecked), ...wrongBlocks])

  const [wrong, others] = [true, false].map((isWrong) =>
    errors.filter((error) => error.startsWith('wrong.md') === isWrong),
  )
  expect(others).toEqual([])
  // The mistakes are found, in their lines.
  expect(wrong?.map((error) => error.split(' ')[0])).toEqual(
    [13, 15, 19, 20].map((line) => `wrong.md:${line}`),
  )
}, 120_000)

test('most code is checked', () => {
  expect(blocks.length).toBeGreaterThan(100)
  expect(blocks.filter((block) => !isChecked(block)).length).toBeLessThan(5)
})

/** A module of one or more blocks. Their code has the same lines as in the page. */
interface PageModule {
  readonly page: string
  readonly language: string
  readonly text: string
}

/** Returns errors such as `docs/guides/keys.md:12 Cannot find name 'lm'.` */
function findErrors(checked: readonly CodeBlock[]): readonly string[] {
  const modules = modulesOf(checked)
  return ts
    .getPreEmitDiagnostics(createProgram(modules))
    .flatMap(({ file, start = 0, code, messageText }) => {
      const message = ts.flattenDiagnosticMessageText(messageText, ' ')
      const module = modules.get(file?.fileName ?? '')
      if (!file || !module) return [`${file?.fileName} ${message}`]
      // JavaScript does not declare the types of parameters.
      if (module.language === 'js' && implicitAny.has(code)) return []
      return [`${module.page}:${file.getLineAndCharacterOfPosition(start).line + 1} ${message}`]
    })
}

const implicitAny: ReadonlySet<number> = new Set([7005, 7006, 7011, 7017, 7019, 7031, 7034, 7053])

function modulesOf(checked: readonly CodeBlock[]): ReadonlyMap<string, PageModule> {
  const groups: CodeBlock[][] = []
  for (const block of checked)
    if (block.mark === 'continues') groups.at(-1)?.push(block)
    else groups.push([block])
  return new Map(groups.flatMap((group) => (group[0] ? [[pathOf(group[0]), toModule(group[0], group)]] : [])))
}

function toModule(first: CodeBlock, group: readonly CodeBlock[]): PageModule {
  let text = importPrelude(first, group.map(({ code }) => code).join(''))
  for (const { line, code } of group) text += '\n'.repeat(line - text.split('\n').length) + code
  return { page: first.page, language: first.language, text }
}

/** A block that begins with the name of its file can be imported by other blocks of its page. */
function pathOf({ page, line, language, code }: CodeBlock): string {
  const [, name = `${line}.${language}`] = /^\/\/ ([\w/[\].-]+\.[jt]s)\b/.exec(code) ?? []
  return join(root, page + folderSuffix, name)
}

const folderSuffix = '.code'

/** Imports the names that a module may use and does not declare, in one line. */
function importPrelude({ page, mark }: CodeBlock, code: string): string {
  const [, framework = 'express'] = /^packages\/(koa|fastify|nest)\//.exec(page) ?? []
  const declared = new Set(namesIn(code))
  const imports = ['base', preludeNames.has(mark) ? mark : framework].map((prelude) => {
    const free = (preludeNames.get(prelude) ?? []).filter((name) => !declared.has(name))
    for (const name of free) declared.add(name)
    return `import { ${free.join(', ')} } from '${join(preludes, prelude)}.ts'; `
  })
  return imports.join('')
}

/** The names below the line `// Exports:` of each prelude. */
const preludeNames: ReadonlyMap<string, readonly string[]> = new Map(
  ['base', 'express', 'fastify', 'hono', 'koa', 'nest'].map((name) => {
    const [, exported = ''] = readFileSync(join(preludes, `${name}.ts`), 'utf8').split('// Exports:\n')
    return [name, namesIn(exported)]
  }),
)

/** Returns the names that the top level of a module imports, declares or exports. */
function namesIn(code: string): readonly string[] {
  const names: string[] = []
  const isInner = [
    ...[ts.isBlock, ts.isClassLike, ts.isExpression],
    ...[ts.isFunctionLike, ts.isInterfaceDeclaration, ts.isTypeNode],
  ]
  const visit = (node: ts.Node): void => {
    const { name } = node as { readonly name?: ts.Node }
    if (name && ts.isIdentifier(name)) names.push(name.text)
    if (!isInner.some((isOfKind) => isOfKind(node))) ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile('code.ts', code, ts.ScriptTarget.ES2023))
  return names
}

function createProgram(modules: ReadonlyMap<string, PageModule>): ts.Program {
  const host = ts.createCompilerHost(options)
  const { directoryExists, fileExists, readFile } = host
  host.directoryExists = (name) => name.includes(`.md${folderSuffix}`) || directoryExists?.(name) === true
  host.fileExists = (name) => modules.has(name) || fileExists(name)
  host.readFile = (name) => modules.get(name)?.text ?? readFile(name)
  return ts.createProgram([...modules.keys(), join(preludes, 'packages.d.ts')], options, host)
}

/** The strict options of an app. */
const options: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.NodeNext,
  types: ['node'],
  strict: true,
  exactOptionalPropertyTypes: true,
  experimentalDecorators: true,
  skipLibCheck: true,
  noEmit: true,
  allowImportingTsExtensions: true,
  // Blocks in JavaScript can declare types in comments.
  allowJs: true,
  checkJs: true,
}
