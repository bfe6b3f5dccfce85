/** Checks the version of Node.js at start. A package manager only warns about the field `engines` of a package. */
import { LlmError } from '../errors.ts'

/** As in `engines` of package.json. */
export const minNodeVersion = '20.19'

/**
 * Throws an `LlmError` `unavailable` if Node.js is too old.
 * @param version such as `22.23.5`
 */
export function expectNodeVersion(version = process.versions.node): void {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [minMajor = 0, minMinor = 0] = minNodeVersion.split('.').map(Number)
  if (major > minMajor || (major === minMajor && minor >= minMinor)) return
  throw new LlmError(
    'unavailable',
    `Modelmount needs Node.js ${minNodeVersion} or later, but this is ${version}. Install a newer one, such as: nvm install 22`,
    { setup: true },
  )
}
