/** What the registry shows of each package: its manifest, and its README from the tarball. */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { toRegistryReadme } from '../../scripts/readme.mjs'
import { pack, root, run } from './npm.ts'

const names = await readdir(join(root, 'packages'))
let folder: string
let tarballs: readonly string[]

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'manifests-'))
  tarballs = await pack(names, folder)
}, 60_000)

afterAll(() => rm(folder, { recursive: true }))

describe.each(names)('the tarball of %s', (name) => {
  const read = async (file: string): Promise<string> => {
    const tarball = tarballs[names.indexOf(name)] as string
    return (await run('tar', ['-xzOf', tarball, `package/${file}`], folder)).stdout
  }

  test('has a licence, keywords, a description and the versions of Node', async () => {
    const manifest = JSON.parse(await read('package.json'))

    expect(manifest).toMatchObject({
      license: 'MIT',
      description: expect.stringMatching(/\.$/),
      engines: { node: expect.stringContaining('20.19') },
      publishConfig: { access: 'public' },
    })
    expect(manifest.keywords).toContain('llm')
    expect(manifest.files.length).toBeGreaterThan(0)
    expect(await read('LICENSE')).toContain('MIT')
  })

  test('has a README without links to files that the page of the registry lacks', async () => {
    const links = Array.from((await read('README.md')).matchAll(/\]\(([^)\s]+)\)/g), ([, link = '']) => link)

    expect(links.filter((link) => !/^(?:https:|#)/.test(link))).toEqual([])
  })
})

test('the README of a registry names the files of this repository, and links to them once they have an address', () => {
  const text = 'See [Keys](../../docs/guides/keys.md#rotate), [below](#more), [npm](https://npmjs.com).'

  expect(toRegistryReadme(text, 'packages/core', undefined)).toBe(
    'See Keys (`docs/guides/keys.md`), [below](#more), [npm](https://npmjs.com).',
  )
  expect(toRegistryReadme(text, 'packages/core', 'https://git.example/blob/main')).toBe(
    'See [Keys](https://git.example/blob/main/docs/guides/keys.md#rotate), [below](#more), [npm](https://npmjs.com).',
  )
})
