/**
 * Runs npm commands as a user outside this workspace does.
 * Linux and macOS only: on Windows `npm` and `npx` are command files, which `execFile` does not start.
 */
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** The environment without variables of this run's npm and Vitest, and without models of this machine. */
export const environment: NodeJS.ProcessEnv = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(npm_|VITEST|TEST$|NODE_ENV$|NODE_OPTIONS$)/.test(name),
    ),
  ),
  PATH: (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => !folder.includes('node_modules'))
    .join(delimiter),
  npm_config_audit: 'false',
  npm_config_fund: 'false',
  // Packages that npm has cached need no further request to the registry.
  npm_config_prefer_offline: 'true',
  OLLAMA_HOST: '',
  OLLAMA_MODELS: join(root, 'no-such-folder'),
}

/** Runs a command. Rejects with its stderr if it fails or takes longer than two minutes. */
export function run(
  command: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = environment,
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  return promisify(execFile)(command, args, { cwd, env, timeout: 120_000 })
}

/** @returns the paths of the tarballs, in the order of the names */
export async function pack(names: readonly string[], into: string): Promise<readonly string[]> {
  const { stdout } = await run(process.execPath, ['scripts/pack.mjs', into, ...names], root)
  return stdout.trim().split('\n')
}

/** Creates a project that contains only a `package.json`, and installs packages in it. */
export async function emptyProject(
  folder: string,
  manifest: object,
  install: readonly string[],
): Promise<string> {
  await mkdir(folder)
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, ...manifest }))
  await run('npm', ['install', '--ignore-scripts', ...install], folder)
  return folder
}

/**
 * Path of a Node program of the given version: the running Node, or one from the npm registry. The registry
 * has packages for Linux, macOS and Windows.
 * @param cwd a folder outside this workspace
 */
export async function nodeOf(line: string, cwd: string): Promise<string> {
  if (`${process.versions.node}.`.startsWith(`${line}.`)) return process.execPath
  const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`
  const print = ['node', '-p', 'process.execPath']
  const { stdout } = await run('npx', ['--ignore-scripts', '-y', '-p', `${name}@${line}`, ...print], cwd)
  return stdout.trim()
}
