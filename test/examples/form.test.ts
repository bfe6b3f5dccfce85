/** Checks that all examples have one form, and that each works without its neighbours and without this workspace. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { root } from '../packaging/npm.ts'
import { filesOf, names } from './examples.ts'

const read = (path: string): string => readFileSync(join(root, path), 'utf8')

const { devDependencies: workspace } = JSON.parse(read('package.json'))

/** Sections that each README has, in this order. */
const sections = ['Run it', 'Test it', 'The files']

describe.each(names)('examples/%s', (name) => {
  const folder = join(root, 'examples', name)
  const files = filesOf(name)
  const manifest = JSON.parse(read(`examples/${name}/package.json`))
  const readme = read(`examples/${name}/README.md`)
  const dependencies: Readonly<Record<string, string>> = {
    ...manifest.dependencies,
    ...manifest.devDependencies,
  }

  test('has the manifest of a package that is never published, and the commands', () => {
    expect(manifest).toMatchObject({
      name: `example-${name}`,
      private: true,
      type: 'module',
      engines: { node: '>=20.19' },
      scripts: { start: expect.any(String), test: expect.any(String) },
    })
  })

  test('has a test of the app, and one that starts it and ends it with SIGTERM', () => {
    const tests = files.filter((file) => /\.test\.[jt]s$/.test(file))
    const codeOf = (pattern: RegExp): string =>
      tests
        .filter((file) => pattern.test(file))
        .map((file) => read(`examples/${name}/${file}`))
        .join('\n')

    expect(codeOf(/server\.test/)).toContain('SIGTERM')
    expect(tests.some((file) => !file.includes('server.test'))).toBe(true)
  })

  test('has a README with the same sections as the others, whose links stay in the folder', () => {
    const headings = Array.from(readme.matchAll(/^## (.*)$/gm), ([, heading]) => heading)
    const links = Array.from(readme.matchAll(/\]\((?!https?:)([^)#]+)/g), ([, link]) => link as string)

    expect(readme).toMatch(/^# .+\n\n\S/)
    expect(headings).toEqual(expect.arrayContaining(sections))
    expect(headings.filter((heading) => sections.includes(heading as string))).toEqual(sections)
    expect(readme).toMatch(/^npm install\n(.*\n)*npm start/m)
    expect(readme).toMatch(/^npm test/m)
    for (const link of links) {
      expect(existsSync(join(folder, link)), link).toBe(true)
      expect(link).not.toMatch(/^\.\.|^\//)
    }
  })

  test('imports only its own files and packages of its manifest', () => {
    for (const file of files.filter((path) => /\.(c|m)?[jt]sx?$/.test(path)))
      for (const specifier of importsOf(read(`examples/${name}/${file}`))) {
        if (specifier.startsWith('.')) {
          const target = relative(folder, resolve(folder, dirname(file), specifier))
          expect(target, `${file}: ${specifier}`).not.toMatch(/^\.\./)
        } else if (!specifier.startsWith('node:')) {
          expect(builtinModules, `${file}: ${specifier}`).not.toContain(specifier)
          const [packageName] = /^(@[^/]+\/)?[^/]+/.exec(specifier) as unknown as [string]
          const found = packageName in dependencies || `@types/${packageName}` in dependencies
          expect(found, `${file}: ${specifier}`).toBe(true)
        }
      }
  })

  test('has the versions of the workspace, so that npm installs nothing twice', () => {
    const versionOf = (range: string): string => range.replace(/^\^/, '').split('.')[0] as string
    const differing = Object.entries(dependencies).filter(
      ([dependency, range]) => workspace[dependency] && versionOf(range) !== versionOf(workspace[dependency]),
    )

    expect(differing).toEqual([])
  })
})

test('the list of examples has each of them', () => {
  const list = read('examples/README.md')

  expect(Array.from(list.matchAll(/^\| \[(.*?)\]\(\1\)/gm), ([, name]) => name).sort()).toEqual([...names])
})

test('a page of the documentation shows the files of the example of interceptors', () => {
  const page = read(pageOf('interceptors.md'))

  for (const file of ['redaction.js', 'retrieval.js', 'audit.js'])
    expect(page).toContain(`\`\`\`js\n${read(`examples/interceptors/${file}`)}\`\`\`\n`)
})

/** Path of a page, wherever it is below `docs/`. */
function pageOf(file: string): string {
  const pages = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
  return join('docs', pages.find((page) => page === file || page.endsWith(`/${file}`)) as string)
}

const importsOf = (code: string): readonly string[] =>
  ts.preProcessFile(code, true, true).importedFiles.map(({ fileName }) => fileName)
