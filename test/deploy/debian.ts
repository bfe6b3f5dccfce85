/** Programs of Debian that the recipes of docs/operations/deploy are tried with. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { root } from '../packaging/npm.ts'

/** Installs the package of the same name if the program is missing. Needs Debian and its root user. */
export function requireProgram(name: string): string {
  const found = findProgram(name)
  if (found) return found
  const options = { stdio: 'pipe', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } } as const
  execFileSync('apt-get', ['update', '-qq'], options)
  execFileSync('apt-get', ['install', '-yqq', '--no-install-recommends', name], options)
  return findProgram(name) ?? fail(`${name} is not in its package.`)
}

const findProgram = (name: string): string | undefined =>
  [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path))

function fail(message: string): never {
  throw new Error(message)
}

/** @param path below docs/operations/deploy */
export const readRecipe = (path: string): string =>
  readFileSync(join(root, 'docs/operations/deploy', path), 'utf8')
