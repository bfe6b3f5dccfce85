/** From an unknown body to a typed one, or to an error that names the field. */
import type { z } from 'zod'
import { type Issue, LlmError } from '../errors.ts'

export function parse<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const result = schema.safeParse(body)
  if (result.success) return result.data
  throw toLlmError(result.error.issues[0] as z.core.$ZodIssue, body)
}

function toLlmError(first: z.core.$ZodIssue, body: unknown): LlmError {
  const issue = deepest(first)
  const param = paramOf(issue.path)
  const value = issue.path.reduce<unknown>(
    (at, key) => (at as Record<PropertyKey, unknown> | undefined)?.[key],
    body,
  )
  const kind = issueOf(issue, value)
  const message =
    param === ''
      ? 'The request body has to be a JSON object.'
      : kind === 'missing'
        ? `Missing required parameter: '${param}'.`
        : `Invalid '${param}': ${issue.message}`
  return new LlmError('invalid_request', message, { issue: kind, ...(param !== '' && { param }) })
}

/** A union says only "invalid"; the branch that came furthest says why. A wrong key says it in an issue of its own. */
function deepest(issue: z.core.$ZodIssue): z.core.$ZodIssue {
  if (issue.code === 'invalid_key') return { ...issue, message: issue.issues[0]?.message ?? issue.message }
  if (issue.code !== 'invalid_union') return issue
  const reasons = issue.errors.flatMap(([reason]) => (reason ? [deepest(reason)] : []))
  const [best] = reasons.sort((a, b) => b.path.length - a.path.length)
  if (!best || best.path.length === 0) return issue
  return { ...best, path: [...issue.path, ...best.path] }
}

/** `messages[0].role` */
const paramOf = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (text, key) =>
      typeof key === 'number' ? `${text}[${key}]` : text ? `${text}.${String(key)}` : String(key),
    '',
  )

function issueOf(issue: z.core.$ZodIssue, value: unknown): Issue {
  switch (issue.code) {
    case 'invalid_type':
      return value === undefined ? 'missing' : 'type'
    case 'invalid_union':
    case 'invalid_value':
      return value === undefined ? 'missing' : typeof value === 'string' ? 'value' : 'type'
    case 'too_big':
      return size(issue.origin, 'too_big')
    case 'too_small':
      return size(issue.origin, 'too_small')
    case 'custom':
      return (issue.params?.issue as Issue | undefined) ?? 'value'
    default:
      return 'value'
  }
}

function size(origin: string, direction: 'too_big' | 'too_small'): Issue {
  if (origin === 'int') return `integer_${direction}`
  if (origin === 'number') return `decimal_${direction}`
  return direction === 'too_small' ? 'empty' : 'value'
}
