/** The admin API's description of itself, as OpenAPI 3.1. */
import { z } from 'zod'
import type { AdminRoute } from './routes.ts'

export function describe(routes: readonly AdminRoute[]): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Modelmount admin API',
      version: '1',
      description:
        'Keys, and what they may. It takes a key with the scope `admin`, where an operation names no other; the requests per minute of that key hold for these calls, too, counted apart from those of models.',
    },
    paths,
    components: {
      securitySchemes: {
        key: { type: 'apiKey', in: 'header', name: 'x-api-key' },
        bearer: { type: 'http', scheme: 'bearer' },
      },
    },
    security: [{ key: [] }, { bearer: [] }],
  }
}

function operation(route: AdminRoute): object {
  const { path, name, summary, scope = 'admin', query = {}, body, mayLackBody = false } = route
  const { answer, status = 200 } = route
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  const inQuery = Object.entries(query).map(([name, schema]) => ({
    name,
    in: 'query',
    schema: toSchema(schema),
  }))
  return {
    operationId: name,
    summary,
    description: `Scope: \`${scope}\`.`,
    parameters: [...inPath, ...inQuery],
    ...(body && { requestBody: { content: asJson(toSchema(body)), required: !mayLackBody } }),
    responses: {
      [status]: { description: 'Done.', content: asJson(toSchema(answer)) },
      ...Object.fromEntries(refusalsOf(route).map((refusal) => [refusal, refused(reasons[refusal])])),
      default: refused('Refused.'),
    },
  }
}

const reasons = {
  400: 'Something in it is wrong: `param` says which field.',
  401: 'No key, or one that is not valid.',
  403: 'A key without the scope, or a page of another origin.',
  404: 'There is nothing of this id.',
  409: 'It is so already, or was decided otherwise.',
  429: 'More requests in a minute than the key may make.',
} as const

function refusalsOf({ path, query, body, mayConflict }: AdminRoute): readonly (keyof typeof reasons)[] {
  return [
    ...(body || query ? ([400] as const) : []),
    401,
    403,
    ...(path.includes(':') ? ([404] as const) : []),
    ...(mayConflict ? ([409] as const) : []),
    429,
  ]
}

const refused = (description: string): object => ({ description, content: asJson(toSchema(ErrorAnswer)) })

const ErrorAnswer = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    param: z.string().optional().describe('The field that is wrong.'),
  }),
})

const asJson = (schema: object): object => ({ 'application/json': { schema } })

/** As it is sent, and not as it is read. */
function toSchema(schema: z.ZodType): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  return rest
}
