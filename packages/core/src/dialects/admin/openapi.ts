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
        'Keys, and what they may. It takes a key with the scope `admin`, where an operation names no other.',
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

function operation({
  path,
  summary,
  scope = 'admin',
  query = {},
  body,
  answer,
  status = 200,
}: AdminRoute): object {
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
    summary,
    description: `Scope: \`${scope}\`.`,
    parameters: [...inPath, ...inQuery],
    ...(body && { requestBody: { content: asJson(toSchema(body)), required: true } }),
    responses: {
      [status]: { description: 'Done.', content: asJson(toSchema(answer)) },
      default: { description: 'Refused.', content: asJson(toSchema(ErrorAnswer)) },
    },
  }
}

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
