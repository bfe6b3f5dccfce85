/** `modelmount serve --upstream NAME=URL,…`: engines whose models run on other servers. */
import { readFileSync } from 'node:fs'
import type { LlmOptions } from '@modelmount/core'
import type { ApiName, UpstreamOptions } from '@modelmount/core/upstream'
import { upstreamKeyVariable } from './environment.ts'

/** One URL, or the URLs of all replicas of a fleet. */
type Upstream = Pick<UpstreamOptions, 'api' | 'apiKey'> & { readonly urls: readonly string[] }

/** Returns the option `engines` of `createLlm()`. Throws an `Error` that names the flag or the variable. */
export async function openUpstreams(
  given: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<NonNullable<LlmOptions['engines']>> {
  const upstreams = parseUpstreams(given, environment)
  // Loaded on use, because most servers have no upstream.
  const [{ upstreamEngine }, { fleetEngine }] = await Promise.all([
    import('@modelmount/core/upstream'),
    import('@modelmount/core/fleet'),
  ])
  const open = ([name, { urls, ...options }]: readonly [string, Upstream]) => {
    try {
      const [url = '', ...others] = urls
      const engine =
        others.length === 0
          ? upstreamEngine({ url, ...options })
          : fleetEngine({ replicas: urls, ...options })
      return [name, engine] as const
    } catch (cause) {
      throw new Error(`--upstream ${name}: ${(cause as Error).message}`, { cause })
    }
  }
  return Object.fromEntries(Object.entries(upstreams).map(open))
}

/** Reads the flags, and the keys from the environment. */
export function parseUpstreams(
  given: readonly string[],
  environment: NodeJS.ProcessEnv,
): Readonly<Record<string, Upstream>> {
  const upstreams: Record<string, Upstream> = {}
  const names = new Map<string, string>()
  for (const text of given) {
    const { name, ...upstream } = parseUpstream(text)
    const variable = upstreamKeyVariable(name)
    const other = names.get(variable)
    // Otherwise the key of one server would be sent to the other.
    if (other !== undefined)
      fail(
        `--upstream: Expected names with different variables for their keys, but '${other}' and '${name}' both have ${variable}.`,
      )
    names.set(variable, name)
    const apiKey = readKey(variable, environment)
    upstreams[name] = { ...upstream, ...(apiKey !== undefined && { apiKey }) }
  }
  return upstreams
}

function parseUpstream(text: string): Upstream & { readonly name: string; readonly api: ApiName } {
  const [, name, api = 'openai', list] =
    /^([^=]+)=(?:(openai|anthropic|ollama|modelmount)\+)?(https?:\/\/.+)$/.exec(text) ?? []
  const urls = list?.split(',') ?? []
  // The text is not repeated, since a URL may contain a password.
  if (name === undefined || urls.length === 0 || !urls.every((url) => /^https?:\/\/./.test(url)))
    fail(
      '--upstream: Expected NAME=URL, such as gpu=http://10.0.0.7:8000, gpu=ollama+http://10.0.0.7:11434, gpu=modelmount+http://10.0.0.7:11434 or hosted=anthropic+https://api.example.com. A fleet has several URLs, separated by commas.',
    )
  return { name, urls, api: api as ApiName }
}

/** @param variable name of the environment variable with the key. With `_FILE` at its end, it names a file */
function readKey(variable: string, environment: NodeJS.ProcessEnv): string | undefined {
  const fileVariable = `${variable}_FILE`
  const [key, file] = [environment[variable]?.trim(), environment[fileVariable]?.trim()]
  if (key && file) fail(`$${variable} and $${fileVariable} exclude each other: remove one of them.`)
  if (!file) return key || undefined
  const fromFile = readText(file, fileVariable).trim()
  return fromFile || fail(`$${fileVariable}: Expected a key in ${file}, which is empty.`)
}

function readText(path: string, variable: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    return fail(`$${variable}: cannot read ${path} (${(cause as NodeJS.ErrnoException).code}).`)
  }
}

function fail(message: string): never {
  throw new Error(message)
}
