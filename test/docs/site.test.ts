/** Builds the site of `docs/` without a network, and follows its links. */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, posix } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { entryPoints } from '../api/entry-points.ts'
import { root } from '../packaging/npm.ts'
import { emptyFolder } from '../support/empty-folder.ts'

const site = emptyFolder()
/** The HTML of each page, by its path in the site. */
let pages: ReadonlyMap<string, string>

beforeAll(async () => {
  const noNetwork = new URL('no-network.mjs', import.meta.url).href
  const vitepress = join(root, 'node_modules/vitepress/bin/vitepress.js')
  const args = ['--import', noNetwork, vitepress, 'build', 'docs', '--outDir', site]
  await promisify(execFile)(process.execPath, args, { cwd: root })
  pages = new Map(
    readdirSync(site, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.html'))
      .map((path) => [path, readFileSync(join(site, path), 'utf8')]),
  )
}, 300_000)

/** Returns the file of the site that an address leads to. */
function fileOf(path: string): string | undefined {
  return [path, `${path}.html`, posix.join(path, 'index.html')]
    .map((file) => file.replace(/^\//, ''))
    .find((file) => statSync(join(site, file), { throwIfNoEntry: false })?.isFile())
}

function isDead(page: string, href: string): boolean {
  const [path = '', anchor] = decodeURI(href).split('#')
  const target = path.startsWith('/') ? path : posix.join('/', posix.dirname(page), path)
  const file = path === '' ? page : fileOf(target)
  if (file === undefined) return true
  return anchor !== undefined && anchor !== '' && !pages.get(file)?.includes(`id="${anchor}"`)
}

test('each link of the site leads to a page, a heading or a file', () => {
  const links = [...pages].flatMap(([page, html]) =>
    [...html.matchAll(/<a [^>]*?href="([^"]*)"/g)]
      .map(([, href = '']) => href.replaceAll('&amp;', '&'))
      .filter((href) => !/^[a-z]+:/.test(href))
      .map((href) => ({ page, href })),
  )

  expect(links.length).toBeGreaterThan(3_000)
  expect(links.filter(({ page, href }) => isDead(page, href))).toEqual([])
})

test('the site has a page of exported types for each entry point, and its search finds them', () => {
  const chunks = join(site, 'assets/chunks')
  const [index = ''] = readdirSync(chunks).filter((name) => name.includes('localSearchIndex'))

  const missing = entryPoints.filter(({ name }) => !pages.has(`reference/api/${name}.html`))

  expect(missing).toEqual([])
  expect(pages.get('reference/api/@modelmount/core.html')).toContain('id="llmoptions"')
  expect(readFileSync(join(chunks, index), 'utf8')).toContain('RateLimiterOptions')
})

test('pages load nothing from other servers', () => {
  const loaded = [...pages.values()].flatMap((html) => [
    ...html.matchAll(
      /<(?:script|img|iframe)[^>]*src="(?:https?:)?\/\/[^"]*"|<link[^>]*href="(?:https?:)?\/\/[^"]*"/g,
    ),
  ])

  expect(pages.size).toBeGreaterThan(60)
  expect(loaded.map(([tag]) => tag)).toEqual([])
})

test('the sidebar leads to each page of the documentation', () => {
  const front = pages.get('guides/keys.html') ?? ''
  const [sidebar = ''] = /<aside class="VPSidebar"[\s\S]*?<\/aside>/.exec(front) ?? []
  const listed = [...sidebar.matchAll(/href="([^"]*)"/g)].map(([, href = '']) => fileOf(href))
  const unlisted = [...pages.keys()].filter((page) => !listed.includes(page))

  expect(unlisted.filter((page) => !/^(404|index)\.html$|^(packages|reference\/api)\//.test(page))).toEqual(
    [],
  )
})
