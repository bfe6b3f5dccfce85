/** The OpenAPI 3.1 document of the admin API. */
import { z } from 'zod'
import { type AdminRoute, scopeOf } from './route.ts'

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
        'Manages API keys, limit requests and usage. Requires a key with the scope that the operation names. `admin` includes `admin:read`. The requests per minute of the key apply to these calls in a separate bucket.',
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
  const { path, name, summary, query = {}, body, isBodyOptional = false } = route
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
    description: `Scope: \`${scopeOf(route)}\`.`,
    parameters: [...pathParameters, ...queryParameters],
    ...(body && { requestBody: { content: toJsonContent(toJsonSchema(body)), required: !isBodyOptional } }),
    responses: {
      [status]: { description: 'Success.', content: toContent(response) },
      ...Object.fromEntries(
        errorStatusesOf(route).map((errorStatus) => [
          errorStatus,
          toErrorResponse((route.body ? bodyErrorDescriptions : errorDescriptions)[errorStatus]),
        ]),
      ),
      default: toErrorResponse('Error.'),
    },
  }
}

const errorDescriptions = {
  400: 'Invalid request: `param` names the field.',
  401: 'The API key is missing or invalid.',
  403: 'The key lacks the scope, or the page is of another origin.',
  404: 'Id not found.',
  408: 'The client paused for too long in the middle of the body.',
  409: 'Conflict with the current state, such as a revoked key or a decided limit request.',
  429: 'The key has exceeded its requests per minute.',
} as const

const bodyErrorDescriptions = {
  ...errorDescriptions,
  429: 'The key has exceeded its requests per minute, or the bodies of its running requests take too much memory.',
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
    ...(body ? ([408] as const) : []),
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
    param: z.string().optional().describe('The invalid field.'),
  }),
})

const toContent = (response: AdminRoute['response']): object =>
  typeof response === 'string'
    ? { [response]: { schema: { type: 'string' } } }
    : toJsonContent(toJsonSchema(response))

const toJsonContent = (schema: object): object => ({ 'application/json': { schema } })

/** Converts a zod schema to the JSON Schema of its input, before defaults and transforms. */
function toJsonSchema(schema: z.ZodType): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  return rest
}
