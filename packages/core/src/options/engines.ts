/** Checks the option `engines`. */
import type { Engine } from '../engine/engine.ts'
import { checkMethods, checkObject } from './check.ts'

/** Engines by name. The models of each are `ENGINE/name`. */
export type Engines = Readonly<Record<string, Engine>>

const namePattern = /^[a-z0-9][a-z0-9._-]*$/i
/** Limit in characters. The host part of a model name in Ollama's layout has at most 350. */
const maxNameLength = 64
/** `local` is the engine of this machine, in texts and in later options. */
const reserved = 'local'

/** Throws a `TypeError` that names the wrong engine. */
export function checkEngines(engines: Engines): void {
  checkObject('engines', engines)
  const names = Object.keys(engines)
  for (const [name, engine] of Object.entries(engines)) {
    if (!namePattern.test(name) || name.length > maxNameLength || name.toLowerCase() === reserved)
      throw new TypeError(
        `Expected \`engines\` to have names of letters, digits, \`.\`, \`_\` and \`-\`, other than '${reserved}' and of at most ${maxNameLength} characters, got '${name}'`,
      )
    const other = names.find((one) => one !== name && one.toLowerCase() === name.toLowerCase())
    if (other !== undefined)
      throw new TypeError(
        `Expected \`engines\` to have different names, but '${name}' and '${other}' are the same`,
      )
    checkEngine(`engines.${name}`, engine)
    checkMethods(`engines.${name}`, engine, ['findModel'])
  }
}

/** @param option name of the option for the error */
export function checkEngine(option: string, engine: unknown): void {
  checkMethods(option, Object(engine), [
    'generate',
    'countTokens',
    'render',
    'embed',
    'rerank',
    'tokenize',
    'detokenize',
    'load',
    'unload',
    'loaded',
    'close',
  ])
}
