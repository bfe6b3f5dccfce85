/** All dialects as one route table. */
import { LlmError } from '../errors.ts'
import type { HttpRequest, Method } from '../http/message.ts'
import type { RouteTable } from '../http/route.ts'
import type { Llm } from '../llm.ts'
import type { DialectName } from './dialect.ts'
import { openai } from './openai/index.ts'

const dialects = { openai }

/** @param names which public APIs to speak; all when absent */
export function routesFor(names: readonly DialectName[] = ['openai']): RouteTable<Llm> {
  const chosen = names.map((name) => {
    if (!Object.hasOwn(dialects, name))
      throw new TypeError(`Expected a dialect of ${Object.keys(dialects).join(', ')}, got '${name}'`)
    return dialects[name]
  })
  return {
    routes: chosen.flatMap(({ routes }) => routes),
    unrouted: (request, allowed) => {
      const response = openai.refuse(refusal(request, allowed))
      return allowed.length === 0
        ? response
        : { ...response, headers: { ...response.headers, allow: allowed.join(', ') } }
    },
  }
}

function refusal({ method, path }: HttpRequest, allowed: readonly Method[]): LlmError {
  return allowed.length === 0
    ? new LlmError('not_found', `Invalid URL (${method} ${path})`)
    : new LlmError(
        'method_not_allowed',
        `${method} is not allowed on ${path}. Allowed: ${allowed.join(', ')}.`,
      )
}
