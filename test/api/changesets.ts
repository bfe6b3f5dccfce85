/**
 * Changes of exported types since the last release, and the changesets that describe them: files `.changeset/NAME.md` in the
 * format of `@changesets/cli`. Its command `version` is not used, because it makes each minor release of peer dependencies a
 * major one.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

/** What `.changeset/released.json` has of each package, by its name. */
export type Released = Readonly<Record<string, { readonly version: string; readonly types: string }>>

export interface ReportedPackage {
  readonly name: string
  readonly version: string
  /** Text of `api.md`. */
  readonly report: string
}

/** The bump of each package, in one changeset. */
export type Changeset = Readonly<Record<string, string>>

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Reads the changesets of a folder. */
export function readChangesets(folder: string): readonly Changeset[] {
  if (!existsSync(folder)) return []
  const names = readdirSync(folder).filter((name) => name.endsWith('.md') && name !== 'README.md')
  return names.map((name) => {
    const [, bumps, text] = /^---\n(.*?)\n---\n(.*)$/s.exec(readFileSync(join(folder, name), 'utf8')) ?? []
    if (bumps === undefined || !text?.trim())
      throw new Error(
        `.changeset/${name}: expected packages with their bumps between two lines ---, then a text`,
      )
    return parse(bumps)
  })
}

/** The types of the last release. A package whose version has changed since is released now, with its present types. */
export const release = (packages: readonly ReportedPackage[], last: Released): Released =>
  Object.fromEntries(
    packages.map(({ name, version, report }) => {
      const known = last[name]
      return [name, known?.version === version ? known : { version, types: hashOf(report) }]
    }),
  )

/** Returns the packages whose types have changed since their release, and that no changeset names as minor or major. */
export function undescribed(
  packages: readonly ReportedPackage[],
  released: Released,
  changesets: readonly Changeset[],
): readonly string[] {
  return packages
    .filter(({ name, report }) => released[name]?.types !== hashOf(report))
    .map(({ name }) => name)
    .filter((name) => !changesets.some((bumps) => ['minor', 'major'].includes(bumps[name] ?? '')))
}
