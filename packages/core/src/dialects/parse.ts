/** From an unknown body to a typed one, or to an error that names the field. */
import { z } from 'zod'
import { fieldPath, type Issue, LlmError } from '../errors.ts'

export function parse<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const result = schema.safeParse(body)
  if (result.success) return result.data
  throw toLlmError(result.error.issues[0] as z.core.$ZodIssue, body)
}

/** An array that is read up to its first wrong item: a hostile one has a million of them, and zod would list them all. */
export const list = <Item extends z.ZodType>(
  item: Item,
  length: { readonly min?: number; readonly max: number },
) =>
  z
    .array(z.unknown())
    .min(length.min ?? 0)
    .max(length.max)
    .transform((values, context) => {
      const items: z.output<Item>[] = []
      for (const [index, value] of values.entries()) {
        const result = item.safeParse(value)
        if (!result.success) {
          const [issue] = result.error.issues as [z.core.$ZodIssue]
          // What a schema has finished is raw again for the schema around it.
          context.issues.push({ ...issue, path: [index, ...issue.path] } as z.core.$ZodRawIssue)
          return z.NEVER
        }
        items.push(result.data)
      }
      return items
    })

function toLlmError(first: z.core.$ZodIssue, body: unknown): LlmError {
  const issue = deepest(first)
  const param = fieldPath(issue.path)
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
  const [best] = reasons
    .filter(({ code, path }) => path.length > 0 || code !== 'invalid_type')
    .sort((a, b) => b.path.length - a.path.length)
  if (!best) return issue
  return { ...best, path: [...issue.path, ...best.path] }
}

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
  if (origin === 'array') return direction === 'too_small' ? 'empty' : 'array_too_long'
  return direction === 'too_small' ? 'value' : 'string_too_long'
}
