/** The code blocks of the documentation. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../packaging/npm.ts'

export interface CodeBlock {
  /** Path from the repository root. */
  readonly page: string
  /** Line of its first line of code in the page. */
  readonly line: number
  readonly language: string
  readonly code: string
  /** The last heading above the block, without `#`. */
  readonly heading: string
  /** Words of a comment `<!-- code: … -->` above the block. */
  readonly mark: string
}

/** Paths of the pages whose code is checked. */
export const documentationPages: readonly string[] = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .map((name) => `docs/${name.replaceAll('\\', '/')}`)
    // TypeDoc writes `docs/reference/api`.
    .filter((name) => name.endsWith('.md') && !/^docs\/(decisions|reference\/api)\//.test(name)),
  ...['packages', 'examples'].flatMap((folder) =>
    readdirSync(join(root, folder))
      .map((name) => `${folder}/${name}/README.md`)
      .filter((page) => existsSync(join(root, page))),
  ),
]

/** Returns the blocks of a page in order, also those in lists. */
export function codeBlocks(page: string): readonly CodeBlock[] {
  const text = readFileSync(join(root, page), 'utf8').replaceAll('\r', '')
  const blocks: CodeBlock[] = []
  let heading = ''
  const found = /^#+ (.*)$|(?:^ *<!-- code: (.*) -->\n\n?)?^( *)```(\w*)\n([\s\S]*?)^ *```$/gm
  for (const match of text.matchAll(found)) {
    const [all, title, mark = '', indent = '', language = '', code = ''] = match
    if (title !== undefined) heading = title
    else {
      const before = text.slice(0, match.index + all.indexOf('```'))
      const line = before.split('\n').length + 1
      const unindented = code.replaceAll(new RegExp(`^${indent}`, 'gm'), '')
      blocks.push({ page, line, language, code: unindented, heading, mark })
    }
  }
  return blocks
}

/** Returns the code of the JavaScript blocks directly below a heading. */
export const codeBelow = (page: string, heading: string): readonly string[] =>
  codeBlocks(page)
    .filter((block) => block.heading === heading && block.language === 'js')
    .map(({ code }) => code)

/** Returns the lines of the shell code of a page. A line that ends with a backslash is joined to the next one. */
export const shellLines = (page: string): readonly string[] =>
  codeBlocks(page)
    .filter(({ language }) => ['sh', 'bash'].includes(language))
    .flatMap(({ code }) => code.replaceAll('\\\n', ' ').split('\n'))
