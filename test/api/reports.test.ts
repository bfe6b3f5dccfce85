/**
 * The exported types of each package are those of its report, and a changeset describes how they differ from the last release.
 * `npm run api` writes the reports. It also notes the types of a release, when the version of a package has changed.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../packaging/npm.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { readChangesets, release, undescribed } from './changesets.ts'
import { readManifest } from './entry-points.ts'
import { renderReports } from './report.ts'

const reports = renderReports()
const packages = [...reports].map(([folder, report]) => {
  const { name, version } = readManifest(folder)
  return { name, version, report }
})

test.each([...reports])('%s/api.md has the exported types of the package', async (folder, report) => {
  await expect(
    report,
    'Exported types have changed. If that is meant, run `npm run api`.',
  ).toMatchFileSnapshot(join(root, folder, 'api.md'))
})

test('changes of exported types since the last release are described', async () => {
  const file = join(root, '.changeset/released.json')
  const released = release(packages, JSON.parse(readFileSync(file, 'utf8')))

  await expect(
    `${JSON.stringify(released, null, 2)}\n`,
    'The version of a package has changed. Run `npm run api`.',
  ).toMatchFileSnapshot(file)
  expect(
    undescribed(packages, released, readChangesets(join(root, '.changeset'))),
    'Exported types of these packages differ from the last release. Describe that in `.changeset/NAME.md`, see CONTRIBUTING.md.',
  ).toEqual([])
})

/** A package, and the note of its release. */
const box = { name: 'box', version: '1.2.0', report: 'export type Box = string' }
const wider = { ...box, report: 'export type Box = string | number' }
const released = release([box], {})

test('types that have changed need a changeset of their package, which is minor or major', () => {
  expect(undescribed([box], released, [])).toEqual([])
  expect(undescribed([wider], released, [])).toEqual(['box'])
  expect(undescribed([wider], released, [{ other: 'minor' }, { box: 'patch' }])).toEqual(['box'])
  expect(undescribed([wider], released, [{ box: 'minor' }])).toEqual([])
})

test('a new version is the release that later types are compared with', () => {
  expect(release([wider], released)).toEqual(released)
  expect(undescribed([wider], release([{ ...wider, version: '1.3.0' }], released), [])).toEqual([])
})

test('changesets are read, and one without a package or a text is rejected', () => {
  const folder = emptyFolder()
  writeFileSync(join(folder, 'README.md'), 'How to write one.\n')
  writeFileSync(join(folder, 'wide-box.md'), "---\n'box': minor\n---\n\nBoxes may be numbers.\n")

  expect(readChangesets(folder)).toEqual([{ box: 'minor' }])
  writeFileSync(join(folder, 'wide-box.md'), "---\n'box': minor\n---\n")
  expect(() => readChangesets(folder)).toThrow('wide-box.md: expected packages')
})
