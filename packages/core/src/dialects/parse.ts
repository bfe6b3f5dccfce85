/** Validates request bodies. Errors name the invalid field. */
import { z } from 'zod'
import { formatFieldPath, type Issue, LlmError } from '../errors.ts'

/** An invalid field of a request body. Each dialect has its own error messages for it. */
export interface FieldIssue {
  /** Path of the field, such as `messages[0].role`. Empty if the body is not an object. */
  readonly param: string
  readonly issue: Issue
  /** Neutral error message, for dialects without a message for this issue. */
  readonly reason: string
  /** Whether the reason comes from a check of this package instead of zod. */
  readonly isCustom: boolean
  /** The invalid value. It is set even if the client wrote the field name in another case. */
  readonly received: unknown
  /** Expected type, such as `string`, `int` or `array`. */
  readonly expected: string | undefined
  /** Minimum or maximum that the value violates. */
  readonly limit: number | undefined
}
export type IssueFormatter = (problem: FieldIssue) => string

/** @param formatIssue creates the error message that the dialect's clients expect */
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

/** Schema of an array. It stops at the first invalid item, since zod would report all of a million items. */
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
          // The outer schema expects issues of the type `$ZodRawIssue`, and completes them itself.
          context.issues.push({ ...issue, path: [index, ...issue.path] } as z.core.$ZodRawIssue)
          return z.NEVER
        }
        items.push(result.data)
      }
      return items
    })

/** Error messages for schemas that define none, in the style of this package. */
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

/** `reportInput` adds the invalid value to each issue. */
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

/** Parameters that this package's checks attach to their issues. */
const paramsOf = (issue: z.core.$ZodIssue): Readonly<Record<string, unknown>> =>
  (issue.code === 'custom' && issue.params) || {}

function limitOf(issue: z.core.$ZodIssue): number | undefined {
  if (issue.code === 'too_big') return Number(issue.maximum)
  if (issue.code === 'too_small') return Number(issue.minimum)
  return paramsOf(issue).limit as number | undefined
}

/**
 * Finds the most specific issue: in a union, the issue with the longest path. An invalid object key gets the
 * message of its first inner issue.
 */
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
