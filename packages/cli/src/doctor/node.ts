/** Checks the version of Node.js against the one that the packages need. */
import { type Finding, findingsOf } from './finding.ts'

const { ok, problem } = findingsOf('Node.js')

/** @param required such as `>=20.19` */
export function checkNode(required: string, version = process.versions.node): Finding {
  const least = required.replace('>=', '')
  return isAtLeast(version, least)
    ? ok(`Version ${version}`)
    : problem(`Version ${version} is too old.`, `Install Node.js ${least} or later, such as: nvm install 22`)
}

function isAtLeast(version: string, least: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [leastMajor = 0, leastMinor = 0] = least.split('.').map(Number)
  return major > leastMajor || (major === leastMajor && minor >= leastMinor)
}
