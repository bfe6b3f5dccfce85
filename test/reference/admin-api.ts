/** Renders docs/reference/admin-api.md from the OpenAPI document of the admin API. */
import { openApiDocument } from '@modelmount/core/operations'
import { block, code, page, table } from './table.ts'

interface Schema {
  readonly type?: string
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema | boolean
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[]
  readonly requestBody?: { readonly content: Content; readonly required: boolean }
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content: Content }>>
}

interface Document {
  readonly info: { readonly description: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

/** Large objects that were written out already, and where. */
type Known = Map<string, string>

export function renderAdminPage(): string {
  const { info, paths } = openApiDocument() as Document
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      route: `${method.toUpperCase()} ${path}`,
      operation,
    })),
  )
  const known: Known = new Map()
  return page(
    '# Admin API',
    `${info.description} [Keys](../guides/keys.md#the-admin-api) shows how to mount it.`,
    '`GET /openapi.json` returns this page as an OpenAPI 3.1 document, from which clients can be generated. `openApiDocument()` of `@modelmount/core/operations` returns it as well.',
    table(
      ['route', 'purpose', 'scope'],
      ...operations.map(({ route, operation }) => [
        `[${code(route)}](#${operation.operationId.toLowerCase()})`,
        operation.summary,
        scopeOf(operation),
      ]),
    ),
    'Bodies are JSON. In the shapes below, a `?` marks what may be absent. Errors have the shape of [all errors of this API](errors.md#shapes).',
    ...operations.flatMap(({ route, operation }) => renderOperation(route, operation, known)),
  )
}

const scopeOf = ({ description }: Operation): string => /`[^`]+`/.exec(description)?.[0] ?? ''

function renderOperation(route: string, operation: Operation, known: Known): readonly string[] {
  const { operationId, summary, parameters, requestBody, responses } = operation
  const [[status, success] = ['', undefined], ...failures] = Object.entries(responses)
  const [[mediaType, { schema }] = ['', { schema: {} }]] = Object.entries(success?.content ?? {})
  return [
    `## ${operationId}`,
    `${code(route)}: ${summary} Scope: ${scopeOf(operation)}.`,
    ...(parameters.length === 0
      ? []
      : [
          table(
            ['parameter', 'in', 'type', 'meaning'],
            ...parameters.map(({ name, in: place, schema }) => [
              code(name),
              place,
              code(typeOf(schema, route, known)),
              [schema.description ?? '', boundsOf(schema)].filter(Boolean).join(' '),
            ]),
          ),
        ]),
    ...(requestBody
      ? [
          requestBody.required ? 'Request:' : 'Request, which may be absent:',
          block(
            'typescript',
            typeOf(requestBody.content['application/json']?.schema ?? {}, `the request of ${route}`, known),
          ),
        ]
      : []),
    mediaType === 'application/json'
      ? `Response, with status ${status}:`
      : `Response, with status ${status}: ${code(mediaType)}.`,
    ...(mediaType === 'application/json' ? [block('typescript', typeOf(schema, route, known))] : []),
    `Errors: ${failures
      .map(([failure]) => failure)
      .filter((failure) => failure !== 'default')
      .join(', ')}.`,
  ]
}

/** Renders a schema like a type of TypeScript. Each large object is written out once. */
function typeOf(schema: Schema, route: string, known: Known, indent = ''): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (schema.anyOf)
    return [...new Set(schema.anyOf.map((one) => typeOf(one, route, known, indent)))].join(' | ')
  if (schema.type === 'array') {
    const item = typeOf(schema.items ?? {}, route, known, indent)
    return / \| /.test(item) && !item.startsWith('{') ? `(${item})[]` : `${item}[]`
  }
  if (schema.properties) return objectOf(schema, route, known, indent)
  if (typeof schema.additionalProperties === 'object')
    return `{ [name: string]: ${typeOf(schema.additionalProperties, route, known, indent)} }`
  return schema.type ?? 'unknown'
}

function objectOf(schema: Schema, route: string, known: Known, indent: string): string {
  const fields = Object.entries(schema.properties ?? {})
  const key = JSON.stringify(schema)
  const before = known.get(key)
  if (before !== undefined && fields.length > 3) return `{ … /* as in ${before} */ }`
  known.set(key, route)
  const inner = `${indent}  `
  const lines = fields.flatMap(([name, field]) => {
    const notes = [field.description, boundsOf(field)].filter(Boolean).join(' ')
    const mark = schema.required?.includes(name) ? '' : '?'
    return [
      ...(notes ? [`${inner}/** ${notes} */`] : []),
      `${inner}${name}${mark}: ${typeOf(field, route, known, inner)}`,
    ]
  })
  return ['{', ...lines, `${indent}}`].join('\n')
}

/** The bounds of a number or a text. Those of 32-bit and 53-bit integers say nothing. */
function boundsOf({ minimum, maximum = Number.MAX_SAFE_INTEGER, minLength, maxLength }: Schema): string {
  const numbers =
    maximum < Number.MAX_SAFE_INTEGER && minimum !== undefined
      ? `From ${minimum} to ${maximum.toLocaleString('en-US')}.`
      : ''
  const lengths = maxLength === undefined ? '' : `${minLength ?? 0} to ${maxLength} characters.`
  return numbers || lengths
}
