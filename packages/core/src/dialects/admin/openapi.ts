/** The admin API's description of itself, as OpenAPI 3.1. */
import { z } from 'zod'
import type { AdminRoute } from './routes.ts'

export function createOpenApiDocument(routes: readonly AdminRoute[]): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: toOperation(route) }
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

function toOperation(route: AdminRoute): object {
  const { path, name, summary, scope = 'admin', query = {}, body, isBodyOptional = false } = route
  const { response, status = 200 } = route
  const pathParameters = [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  const queryParameters = Object.entries(query).map(([name, schema]) => ({
    name,
    in: 'query',
    schema: toJsonSchema(schema),
  }))
  return {
    operationId: name,
    summary,
    description: `Scope: \`${scope}\`.`,
    parameters: [...pathParameters, ...queryParameters],
    ...(body && { requestBody: { content: toJsonContent(toJsonSchema(body)), required: !isBodyOptional } }),
    responses: {
      [status]: { description: 'Done.', content: toJsonContent(toJsonSchema(response)) },
      ...Object.fromEntries(
        errorStatusesOf(route).map((errorStatus) => [
          errorStatus,
          toErrorResponse(errorDescriptions[errorStatus]),
        ]),
      ),
      default: toErrorResponse('Refused.'),
    },
  }
}

const errorDescriptions = {
  400: 'Something in it is wrong: `param` says which field.',
  401: 'No key, or one that is not valid.',
  403: 'A key without the scope, or a page of another origin.',
  404: 'There is nothing of this id.',
  409: 'It is so already, or was decided otherwise.',
  429: 'More requests in a minute than the key may make.',
} as const

function errorStatusesOf({
  path,
  query,
  body,
  canConflict,
}: AdminRoute): readonly (keyof typeof errorDescriptions)[] {
  return [
    ...(body || query ? ([400] as const) : []),
    401,
    403,
    ...(path.includes(':') ? ([404] as const) : []),
    ...(canConflict ? ([409] as const) : []),
    429,
  ]
}

const toErrorResponse = (description: string): object => ({
  description,
  content: toJsonContent(toJsonSchema(ErrorBody)),
})

const ErrorBody = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    param: z.string().optional().describe('The field that is wrong.'),
  }),
})

const toJsonContent = (schema: object): object => ({ 'application/json': { schema } })

/** As it is sent, and not as it is read. */
function toJsonSchema(schema: z.ZodType): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  return rest
}
