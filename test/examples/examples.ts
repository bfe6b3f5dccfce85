/** The examples, as they are in git. */
import { execFileSync } from 'node:child_process'
import { root } from '../packaging/npm.ts'

/** Paths from the root of the repository, without ignored files. */
const tracked = execFileSync(
  'git',
  ['ls-files', '--cached', '--others', '--exclude-standard', '--deduplicate', 'examples'],
  { cwd: root, encoding: 'utf8' },
)
  .trim()
  .split('\n')

export const names: readonly string[] = [
  ...new Set(tracked.flatMap((path) => /^examples\/([^/]+)\//.exec(path)?.[1] ?? [])),
].sort()

/** Paths from the folder of the example. */
export const filesOf = (name: string): readonly string[] =>
  tracked
    .filter((path) => path.startsWith(`examples/${name}/`))
    .map((path) => path.slice(`examples/${name}/`.length))
