/** From an unknown body to a typed one, or to an error that names the field. */
import { z } from 'zod'
import { formatFieldPath, type Issue, LlmError } from '../errors.ts'

/** What is wrong with a body, for a dialect to say. */
export interface FieldIssue {
  /** The field, as a path: `messages[0].role`. Empty when the body is no object at all. */
  readonly param: string
  readonly issue: Issue
  /** In nobody's dialect. */
  readonly reason: string
  /** Whether a check of ours says the reason, and not zod. */
  readonly isCustom: boolean
  /** What was there instead, whichever way its name was written. */
  readonly received: unknown
  /** The type that it should have had: `string`, `int`, `array`. */
  readonly expected: string | undefined
  /** What it is larger or smaller than. */
  readonly limit: number | undefined
}
export type IssueFormatter = (problem: FieldIssue) => string

/** @param formatIssue what is said of what does not fit, in the words of a dialect */
export function parse<Schema extends z.ZodType>(
  schema: Schema,
  body: unknown,
  formatIssue: IssueFormatter,
): z.output<Schema> {
  const result = schema.safeParse(body, parseOptions)
  if (result.success) return result.data
  const problem = toFieldIssue(result.error.issues[0] as z.core.$ZodIssue, body)
  const { param, issue } = problem
  throw new LlmError('invalid_request', formatIssue(problem), { issue, ...(param !== '' && { param }) })
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
        const result = item.safeParse(value, parseOptions)
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

/** What is wrong, where a schema has no words of its own for it: zod's do not read like the others. */
const defaultErrorMap: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case 'invalid_type':
      return `expected ${typeNames[issue.expected as keyof typeof typeNames] ?? issue.expected}.`
    case 'invalid_value':
      return `expected ${issue.values.map((value) => (typeof value === 'string' ? `'${value}'` : String(value))).join(' or ')}.`
    case 'too_big':
      return `expected ${describeBound(issue.origin, `up to ${issue.maximum}`, `at most ${issue.maximum}`)}.`
    case 'too_small':
      return `expected ${describeBound(issue.origin, `from ${issue.minimum} up`, `at least ${issue.minimum}`)}.`
    default:
      return undefined
  }
}

/** Issues have what was there instead. */
const parseOptions = { error: defaultErrorMap, reportInput: true } as const

const typeNames = {
  string: 'a string',
  number: 'a number',
  boolean: 'a boolean',
  array: 'an array',
  object: 'an object',
} as const

function describeBound(origin: string, value: string, count: string): string {
  if (origin === 'string') return `${count} characters`
  return origin === 'array' ? `${count} elements` : `a number ${value}`
}

function toFieldIssue(first: z.core.$ZodIssue, body: unknown): FieldIssue {
  const issue = findDeepestIssue(first)
  const value = issue.path.reduce<unknown>(
    (at, key) => (at as Record<PropertyKey, unknown> | undefined)?.[key],
    body,
  )
  return {
    param: formatFieldPath(issue.path),
    issue: issueOf(issue, value),
    reason: issue.message,
    isCustom: issue.code === 'custom',
    received: issue.input,
    expected:
      issue.code === 'invalid_type' ? issue.expected : (paramsOf(issue).expected as string | undefined),
    limit: limitOf(issue),
  }
}

/** What our own checks say of themselves. */
const paramsOf = (issue: z.core.$ZodIssue): Readonly<Record<string, unknown>> =>
  (issue.code === 'custom' && issue.params) || {}

function limitOf(issue: z.core.$ZodIssue): number | undefined {
  if (issue.code === 'too_big') return Number(issue.maximum)
  if (issue.code === 'too_small') return Number(issue.minimum)
  return paramsOf(issue).limit as number | undefined
}

/** A union says only "invalid"; the branch that came furthest says why. A wrong key says it in an issue of its own. */
function findDeepestIssue(issue: z.core.$ZodIssue): z.core.$ZodIssue {
  if (issue.code === 'invalid_key') return { ...issue, message: issue.issues[0]?.message ?? issue.message }
  if (issue.code !== 'invalid_union') return issue
  const reasons = issue.errors.flatMap(([reason]) => (reason ? [findDeepestIssue(reason)] : []))
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
      return toSizeIssue(issue.origin, 'too_big')
    case 'too_small':
      return toSizeIssue(issue.origin, 'too_small')
    case 'custom': {
      const customIssue = (paramsOf(issue).issue as Issue | undefined) ?? 'value'
      return customIssue === 'type' && value === undefined ? 'missing' : customIssue
    }
    default:
      return 'value'
  }
}

function toSizeIssue(origin: string, direction: 'too_big' | 'too_small'): Issue {
  if (origin === 'int') return `integer_${direction}`
  if (origin === 'number') return `decimal_${direction}`
  if (origin === 'array') return direction === 'too_small' ? 'empty' : 'array_too_long'
  return direction === 'too_small' ? 'value' : 'string_too_long'
}
