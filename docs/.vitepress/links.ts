/**
 * Links of the pages, which are written for the repository: `[keys](../guides/keys.md)`, `[server.js](server.js)`.
 *
 * - A page of the site becomes a link to it. VitePress fails if it does not exist.
 * - A file of `docs/` or `examples/` is copied into the site, and becomes a download.
 * - Anything else, such as source code, has no address yet: its text stays, with the path as a tooltip.
 */
import { cpSync, existsSync, statSync } from 'node:fs'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { MarkdownOptions, MarkdownRenderer } from 'vitepress'
import { fromPage, isPage, sitePath } from './pages.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

type Token = ReturnType<MarkdownRenderer['parse']>[number]

/** Files that pages link to, as paths from the repository root. */
const linkedFiles = new Set<string>()

export const linkRepository: NonNullable<MarkdownOptions['config']> = (markdown) => {
  markdown.core.ruler.push('repository-links', ({ tokens, env }) => {
    const page = posix.relative(root, env.realPath ?? env.path)
    for (const { children } of tokens) if (children) linkTokens(page, children)
  })
}

/** Copies the files that pages link to into the folder of the built site. */
export function copyLinkedFiles(outDir: string): void {
  for (const file of linkedFiles) cpSync(join(root, file), join(outDir, sitePath(file)))
}

function linkTokens(page: string, tokens: readonly Token[]): void {
  for (const [index, token] of tokens.entries()) {
    const href = token.type === 'link_open' ? token.attrGet('href') : null
    if (href === null || /^([a-z]+:|[#/])/.test(href)) continue
    const [target = '', anchor] = decodeURI(href).split('#')
    const file = existingFile(page, target)
    if (isPage(file)) token.attrSet('href', `/${sitePath(file)}${anchor === undefined ? '' : `#${anchor}`}`)
    else if (/^(docs|examples)\//.test(file) && statSync(join(root, file)).isFile())
      linkFile(token, page, file)
    else {
      const end = tokens.find(({ type }, later) => later > index && type === 'link_close')
      for (const tag of [token, ...(end ? [end] : [])]) tag.tag = 'span'
      token.attrs = [['title', file]]
    }
  }
}

function linkFile(token: Token, page: string, file: string): void {
  linkedFiles.add(file)
  token.attrSet('href', fromPage(page, file))
  token.attrSet('download', '')
}

/** Returns the path of a linked file, or of the page of a linked folder. */
function existingFile(page: string, target: string): string {
  const path = posix.join(posix.dirname(page), target).replace(/\/$/, '')
  if (!existsSync(join(root, path)))
    throw new Error(`${page}: a link leads to ${path}, which does not exist.`)
  const inFolder = ['index.md', 'README.md'].map((name) => posix.join(path, name))
  const found = statSync(join(root, path)).isDirectory()
    ? inFolder.find((name) => existsSync(join(root, name)))
    : path
  return found ?? path
}
