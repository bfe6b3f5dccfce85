/**
 * F-5: malicious versions of a popular package reached all that installed it. F-6: a dependency sent telemetry
 * from an install script. Each dependency is a risk, so apps get few, locked by hash, without install scripts.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = new URL('../../../', import.meta.url)
const read = (path: string) => JSON.parse(readFileSync(fileURLToPath(new URL(path, root)), 'utf8'))

interface Locked {
  readonly version?: string
  readonly resolved?: string
  readonly integrity?: string
  readonly link?: boolean
  readonly hasInstallScript?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
}
const { packages } = read('package-lock.json') as { readonly packages: Readonly<Record<string, Locked>> }

/** Finds an installed package as Node does: in the folder of its importer, or in one above. */
function find(name: string, from: string): string {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    const path = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`
    if (packages[path]) return path
    if (folder === '') throw new Error(`${name} is not in package-lock.json`)
    if (!folder.includes('/node_modules/')) folder = ''
  }
}

/** Paths of all packages that an app installs with these packages of the workspace. */
function installedWith(names: readonly string[]): ReadonlySet<string> {
  const seen = new Set<string>()
  const open = names.map((name) => `packages/${name}`)
  for (let path = open.pop(); path !== undefined; path = open.pop())
    for (const name of Object.keys(packages[path]?.dependencies ?? {})) {
      if (name.startsWith('@modelmount/')) continue
      const found = find(name, path)
      if (!seen.has(found)) open.push(found)
      seen.add(found)
    }
  return seen
}

const most = 25

test(`core and all adapters have at most ${most} dependencies, direct and indirect, none with an install script`, () => {
  const installed = installedWith(['core', 'express', 'fastify', 'koa', 'nest'])

  expect([...installed].length).toBeGreaterThan(5)
  expect([...installed].length).toBeLessThanOrEqual(most)
  expect([...installed].filter((path) => packages[path]?.hasInstallScript)).toEqual([])
})

/** npm leaves out the address of this registry. */
const npmRegistry = 'https://registry.npmjs.org/'

test('every locked package comes from the npm registry, with its hash, and none is known for telemetry', () => {
  const others = Object.entries(packages).filter(
    ([path, { link }]) => path.includes('node_modules/') && !link,
  )

  expect(others.length).toBeGreaterThan(100)
  for (const [path, { resolved = npmRegistry, integrity }] of others) {
    expect(resolved, path).toContain(npmRegistry)
    expect([path, integrity]).toEqual([path, expect.stringMatching(/^sha(512|1)-/)])
    expect(path).not.toMatch(/scarf|swagger-ui-dist/)
  }
})

test.each(['core', 'express', 'fastify', 'koa', 'nest', 'console', 'cli', 'tiny-model'])(
  'the package %s has no install script',
  (name) => {
    const { scripts = {} } = read(`packages/${name}/package.json`) as { scripts?: Record<string, string> }

    expect(Object.keys(scripts).filter((script) => /install|^prepare$/.test(script))).toEqual([])
  },
)
