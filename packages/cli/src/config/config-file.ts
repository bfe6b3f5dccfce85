/** Reads the file of `--config`: the options of `createLlm()`, as JSON or as the default export of a module. */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, extname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { LlmOptions } from '@modelmount/core'
import { resolvePaths } from './paths.ts'

/** Rejects with an error that names the file. Paths in the result are absolute. */
export async function readConfigFile(file: string): Promise<LlmOptions> {
  const path = resolve(file)
  const options = extname(path) === '.json' ? readJson('--config', file) : await readModule(file, path)
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new Error(`--config: Expected an object of options in ${file}, got ${describe(options)}.`)
  return resolvePaths(options as LlmOptions, dirname(path))
}

/** @param flag that names the file, for errors */
export function readJson(flag: string, file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw unreadable(flag, file, cause)
  }
}

async function readModule(file: string, path: string): Promise<unknown> {
  const [, typescript] = /^\.[cm]?(?:js|(ts))$/.exec(extname(path)) ?? fail(file)
  // Absent before Node.js 22.10.
  if (typescript && !(process.features as { readonly typescript?: unknown }).typescript)
    throw new Error(
      `--config: ${file} is TypeScript, which Node.js ${process.version} does not load. Use Node.js 22.18 or later, or write the file in JavaScript.`,
    )
  const module = (await importAgain(path).catch((cause) => {
    throw unreadable('--config', file, cause)
  })) as { readonly default?: unknown }
  if ('default' in module) return module.default
  throw new Error(`--config: Expected ${file} to export the options: export default { … }`)
}

let imports = 0

/** Imports a module as it is now. Modules that it imports stay as they were at their first import. */
function importAgain(path: string): Promise<unknown> {
  // The query makes Node.js load an ES module again. A CommonJS module is cached by its path alone.
  delete createRequire(import.meta.url).cache[path]
  imports += 1
  return import(`${pathToFileURL(path)}?${imports}`)
}

function unreadable(flag: string, file: string, cause: unknown): Error {
  const [reason] = cause instanceof Error ? cause.message.split('\n') : [String(cause)]
  const problem = existsSync(file) ? `cannot be read: ${reason}` : 'does not exist.'
  return new Error(`${flag}: ${file} ${problem}`, { cause })
}

function fail(file: string): never {
  throw new Error(`--config: Expected a file .json, .js, .mjs, .cjs, .ts, .mts or .cts, got ${file}.`)
}

const describe = (value: unknown): string =>
  typeof value === 'object' ? JSON.stringify(value) : `a ${typeof value}`
