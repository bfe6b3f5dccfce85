/** Which Markdown files of the repository are pages of the site, and their addresses. Paths are from the repository root. */
import { posix } from 'node:path'

/** Patterns of Markdown files that are no pages of the site. `isPage` must give the same answer. */
export const notPages: readonly string[] = [
  'README.md',
  '{.ci,bench,scripts,shared,test}/**',
  '{examples,packages}/*/*/**',
]

export const isPage = (path: string): boolean =>
  /^(docs\/.+|(examples|packages)\/([^/]+\/)?README|ARCHITECTURE|CHANGELOG|CONTRIBUTING|SECURITY)\.md$/.test(
    path,
  )

/** Returns where a file is on the site, such as `guides/keys.md` for `docs/guides/keys.md`. */
export const sitePath = (path: string): string =>
  path
    .replace(/^docs\//, '')
    .replace(/^[A-Z]+\.md$/, (name) => `project/${name.toLowerCase()}`)
    .replace(/\bREADME\.md$/, 'index.md')

/** Returns the path from one page of the site to a file of the site. */
export const fromPage = (page: string, file: string): string =>
  posix.relative(posix.dirname(sitePath(page)), sitePath(file))

/** Returns the anchor of a heading, as Git hosts do. */
export const slug = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, '')
    .replaceAll(' ', '-')
