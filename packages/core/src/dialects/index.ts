/** All dialects as one route table. */
import { LlmError } from '../errors.ts'
import type { HttpRequest } from '../http/message.ts'
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
    unrouted: (request, routed) => {
      // Every router answers HEAD by the route of GET.
      const allowed = routed.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
      const { headers, ...response } = openai.refuse(refusal(request, allowed))
      return { ...response, headers: allowed === '' ? headers : { ...headers, allow: allowed } }
    },
  }
}

const refusal = ({ method, path }: HttpRequest, allowed: string): LlmError =>
  allowed === ''
    ? new LlmError('not_found', `Invalid URL (${method} ${path})`)
    : new LlmError('method_not_allowed', `${method} is not allowed on ${path}. Allowed: ${allowed}.`)
