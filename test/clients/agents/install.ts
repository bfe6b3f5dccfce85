/** Installs a project of this folder, with the versions of its lock file, in a folder outside this workspace. */
import { cp, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { root, run } from '../../packaging/npm.ts'

export async function installLocked(name: string, into: string): Promise<string> {
  const project = join(into, name)
  await mkdir(project)
  await cp(join(root, 'test/clients/agents', name), project, { recursive: true })
  // `npm ci` rejects lock files without the packages of other platforms that the registry lacks.
  await run('npm', ['install', '--ignore-scripts', '--no-save'], project)
  return project
}

/** Returns the version of an installed package. */
export async function versionIn(project: string, name: string): Promise<string> {
  const manifest = await readFile(join(project, 'node_modules', name, 'package.json'), 'utf8')
  return (JSON.parse(manifest) as { version: string }).version
}
