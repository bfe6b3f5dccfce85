/** Checks that each link of the Markdown files leads to a file or a heading of this repository. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { expect, test } from 'vitest'
import { slug } from '../../docs/.vitepress/pages.ts'
import { root } from '../packaging/npm.ts'

const pages = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.md'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((page) => page !== '' && existsSync(join(root, page)))

const proseOf = (text: string): string => text.replaceAll(/^( *)```[\s\S]*?^ *```$/gm, '')

/** Returns links such as `keys.md#settings`. Those with a scheme lead elsewhere. */
const linksIn = (text: string): readonly string[] =>
  [...proseOf(text).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^[a-z]+:/.test(link))

/** Returns the anchors of the headings. Equal headings get numbers. */
function anchorsIn(text: string): ReadonlySet<string> {
  const anchors = new Set<string>()
  for (const [, heading = ''] of proseOf(text).matchAll(/^#+ (.*)$/gm)) {
    const anchor = slug(heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1'))
    let unique = anchor
    for (let number = 1; anchors.has(unique); number++) unique = `${anchor}-${number}`
    anchors.add(unique)
  }
  return anchors
}

function isDead(page: string, link: string): boolean {
  const [path = '', anchor] = decodeURI(link).split('#')
  const file = path === '' ? page : posix.join(posix.dirname(page), path)
  if (!existsSync(join(root, file))) return true
  if (anchor === undefined || !file.endsWith('.md')) return false
  return !anchorsIn(readFileSync(join(root, file), 'utf8')).has(anchor)
}

test('each link leads to a file, and each anchor to a heading', () => {
  const links = pages.flatMap((page) =>
    linksIn(readFileSync(join(root, page), 'utf8')).map((link) => ({ page, link })),
  )

  expect(links.length).toBeGreaterThan(800)
  expect(links.filter(({ page, link }) => isDead(page, link))).toEqual([])
})

test('links to nothing are found', () => {
  expect(isDead('docs/guides/keys.md', 'no-such-page.md')).toBe(true)
  expect(isDead('docs/guides/keys.md', '#no-such-heading')).toBe(true)
  expect(isDead('docs/guides/keys.md', '#the-admin-api')).toBe(false)
})
