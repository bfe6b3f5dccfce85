/** What is right in the settings of a key, in the app and over HTTP alike. */
import { z } from 'zod'
import { formatFieldPath, invalidRequest } from '../../errors.ts'
import { parseDuration } from '../../units.ts'
import type { Expiry, Lifetime } from './settings.ts'

const limitValue = z.int().min(1).max(1_000_000_000)

/** They are printed on terminals, and PostgreSQL keeps no NUL. */
const singleLine = (max: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(max)
    .regex(/^\P{Cc}*$/u, 'Expected a text in one line.')

const limits = z.strictObject({
  requestsPerMinute: limitValue.optional(),
  tokensPerMinute: limitValue.optional(),
  /** Calls at the same time. */
  concurrent: limitValue.optional(),
})

const spendLimit = z.strictObject({
  nanoUsd: z.int().min(0),
  per: z.enum(['day', 'month', 'lifetime']),
})

const name = singleLine(100)
const scopes = z
  .array(z.enum(['inference', 'models', 'admin']))
  .min(1)
  .max(3)
const models = z.array(singleLine(1_000)).min(1).max(1_000)
const tier = singleLine(100)
const durations = [
  { type: 'integer', minimum: 0, description: 'Milliseconds.' },
  { type: 'string', pattern: String.raw`^\d{1,6}d$`, description: 'Days.' },
  { type: 'string', pattern: String.raw`^\+?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))+)$` },
]
const expires = z
  .custom<Expiry>(
    (value) => parseLifetimeMs(value) !== undefined || isTimestamp(value),
    "Expected a duration such as '30d', a number of milliseconds, or a date.",
  )
  .meta({
    anyOf: [
      ...durations,
      { type: 'string', format: 'date-time' },
      { type: 'string', format: 'date', description: 'The beginning of that day, in UTC.' },
    ],
  })

export const KeySettings = z.strictObject({
  name,
  scopes: scopes.optional(),
  models: models.optional(),
  limits: limits.optional(),
  tier: tier.optional(),
  spendLimit: spendLimit.optional(),
  expires: expires.optional(),
})

export const KeyChanges = z.strictObject({
  name: name.optional(),
  scopes: scopes.optional(),
  models: models.nullish(),
  limits: limits.nullish(),
  tier: tier.nullish(),
  spendLimit: spendLimit.nullish(),
  expires: expires.nullish(),
})

export const Rotation = z.strictObject({
  grace: z
    .custom<Lifetime>(
      (value) => parseLifetimeMs(value) !== undefined,
      "Expected a duration such as '12h' or '7d', or a number of milliseconds.",
    )
    .optional()
    .meta({ anyOf: durations, description: "How long the secrets before are let in yet. Default: '24h'." }),
})

export const LimitRequestInput = z.strictObject({
  limits,
  reason: z
    .string()
    .trim()
    .max(2_000)
    .regex(/^[^\0]*$/, 'Expected a text without NUL.')
    .optional(),
})

/** Throws `invalid_request`, with the field. */
export function parseSettings<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues as [z.core.$ZodIssue]
  const param = formatFieldPath(issue.path)
  throw invalidRequest(param === '' ? issue.message : `${param}: ${issue.message}`, { param })
}

/** @param nowMs of the clock that will tell */
export function resolveExpiry(expiry: Expiry | null | undefined, nowMs: number): number | null {
  if (expiry === undefined || expiry === null) return null
  const ms = parseLifetimeMs(expiry)
  return ms === undefined ? new Date(expiry).getTime() : Math.ceil(nowMs + ms)
}

function parseLifetimeMs(value: unknown): number | undefined {
  const [, days] = typeof value === 'string' ? (/^(\d{1,6})d$/.exec(value) ?? []) : []
  const ms =
    days !== undefined ? Number(days) * dayMs : typeof value === 'string' ? parseDuration(value) : value
  return typeof ms === 'number' && ms >= 0 && ms <= maxMs ? ms : undefined
}

const dayMs = 86_400_000
/** Ten thousand years are never. */
const maxMs = 3_652_500 * dayMs

/** Over HTTP, as RFC 3339 says it: with a time, or the day alone. */
const timestamp = z.union([z.iso.datetime({ offset: true }), z.iso.date()])

function isTimestamp(value: unknown): boolean {
  if (typeof value === 'string' && !timestamp.safeParse(value).success) return false
  const at = value instanceof Date || typeof value === 'string' ? new Date(value).getTime() : Number.NaN
  return Math.abs(at) <= maxMs
}
