/** Schemas of key settings. They validate settings from the host app and from HTTP requests. */
import { z } from 'zod'
import { formatFieldPath, invalidRequest } from '../../errors.ts'
import { parseDuration } from '../../units.ts'
import { allScopes } from '../auth/caller.ts'
import { parseUsd, type SpendingLimit } from '../spending-limit.ts'
import type { Lifetime, Timestamp } from './settings.ts'

const limitValue = z.int().min(1).max(1_000_000_000)

/** A string without control characters, because terminals print it and PostgreSQL cannot store NUL. */
const singleLine = (max: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(max)
    .regex(/^\P{Cc}*$/u, 'Expected a single line without control characters.')

const limits = z.strictObject({
  requestsPerMinute: limitValue.optional(),
  tokensPerMinute: limitValue.optional(),
  inputTokensPerMinute: limitValue.optional().describe('Without tokens that are read from the prompt cache.'),
  outputTokensPerMinute: limitValue.optional(),
  tokensPerDay: z.int().min(1).max(100_000_000).optional(),
  concurrent: limitValue.optional(),
  maxOutputTokens: limitValue.optional().describe('Maximum output tokens of one call.'),
  perEndUser: z
    .strictObject({
      requestsPerMinute: limitValue.optional(),
      tokensPerMinute: limitValue.optional(),
      inputTokensPerMinute: limitValue.optional(),
      outputTokensPerMinute: limitValue.optional(),
      concurrent: limitValue.optional(),
    })
    .optional()
    .describe('Limits of each end user of the key. Calls without an end user share the limits of one.'),
})

const spendingLimit = z.strictObject({
  usd: z
    .custom<SpendingLimit['usd']>(
      (value) => parseUsd(value) !== undefined,
      'Expected dollars from 0 to 9007199.254740991 with at most 9 decimal places, as a number or a decimal string.',
    )
    .meta({
      anyOf: [
        { type: 'number', minimum: 0, maximum: 9007199.254740991 },
        { type: 'string', pattern: String.raw`^\d{1,7}(\.\d{1,9})?$` },
      ],
      description: 'Dollars. Responses contain a number where it is exact, else a string.',
    }),
  period: z.enum(['day', 'month', 'lifetime']),
})

const name = singleLine(100)
const tenant = singleLine(100)
const scopes = z.array(z.enum(allScopes)).min(1).max(allScopes.length)
const models = z.array(singleLine(1_000)).min(1).max(1_000)
const tier = singleLine(100)
const durations = [
  { type: 'integer', minimum: 0, description: 'Milliseconds.' },
  { type: 'string', pattern: String.raw`^\d{1,6}d$`, description: 'Days.' },
  { type: 'string', pattern: String.raw`^\+?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))+)$` },
]
const expiresIn = z
  .custom<Lifetime>(
    (value) => parseLifetimeMs(value) !== undefined,
    "Expected a duration such as '30d' or '12h', or a number of milliseconds.",
  )
  .meta({ anyOf: durations, description: 'How long the key is valid. Excludes `expiresAt`.' })
const expiresAt = z
  .custom<Timestamp>(isTimestamp, "Expected a date such as '2027-01-31' or '2027-01-31T12:00:00Z'.")
  .meta({
    anyOf: [
      { type: 'string', format: 'date-time' },
      { type: 'string', format: 'date', description: 'The beginning of that day, in UTC.' },
    ],
    description: 'When the key stops being valid. Excludes `expiresIn`.',
  })

const hasOneExpiry = (settings: { readonly expiresIn?: unknown; readonly expiresAt?: unknown }): boolean =>
  settings.expiresIn === undefined || settings.expiresAt === undefined
const oneExpiry = { path: ['expiresAt'], message: 'Expected `expiresIn` or `expiresAt`, not both.' }
const oneExpirySchema = { not: { required: ['expiresIn', 'expiresAt'] } }

export const KeySettings = z
  .strictObject({
    name,
    tenant: tenant.optional(),
    scopes: scopes.optional(),
    models: models.optional(),
    limits: limits.optional(),
    tier: tier.optional(),
    spendingLimit: spendingLimit.optional(),
    expiresIn: expiresIn.optional(),
    expiresAt: expiresAt.optional(),
  })
  .refine(hasOneExpiry, oneExpiry)
  .meta(oneExpirySchema)

export const KeyChanges = z
  .strictObject({
    name: name.optional(),
    tenant: tenant.nullish(),
    scopes: scopes.optional(),
    models: models.nullish(),
    limits: limits.nullish(),
    tier: tier.nullish(),
    spendingLimit: spendingLimit.nullish(),
    expiresIn: expiresIn.optional(),
    expiresAt: expiresAt.nullish(),
  })
  .refine(hasOneExpiry, oneExpiry)
  .meta(oneExpirySchema)

export const Rotation = z.strictObject({
  grace: z
    .custom<Lifetime>(
      (value) => parseLifetimeMs(value) !== undefined,
      "Expected a duration such as '12h' or '7d', or a number of milliseconds.",
    )
    .optional()
    .meta({ anyOf: durations, description: "How long the previous secrets stay valid. Default: '24h'." }),
})

/** A text of several lines. PostgreSQL cannot store NUL. */
const longText = z
  .string()
  .trim()
  .max(2_000)
  .regex(/^[^\0]*$/, 'Expected a string without NUL.')

export const LimitRequestInput = z.strictObject({
  limits: limits.optional().describe('None of them may be lower than the present limit.'),
  spendingLimit: spendingLimit
    .optional()
    .describe('May refuse nothing that the present spending limit allows.'),
  reason: longText.optional(),
})

export const DecisionInput = z.strictObject({
  note: longText.optional().describe('For the owner of the key.'),
})

/** Throws an `invalid_request` that names the field. */
export function parseSettings<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues as [z.core.$ZodIssue]
  const param = formatFieldPath(issue.path)
  throw invalidRequest(param === '' ? issue.message : `${param}: ${issue.message}`, { param })
}

/**
 * Expiry of a key in milliseconds since 1970. Null if the key never expires. Undefined if the settings
 * contain no expiry.
 *
 * @param nowMs current time by the database's clock, which also decides when a key has expired
 */
export function resolveExpiry(
  {
    expiresIn,
    expiresAt,
  }: { readonly expiresIn?: Lifetime | undefined; readonly expiresAt?: Timestamp | null | undefined },
  nowMs: number,
): number | null | undefined {
  if (expiresIn !== undefined) return addLifetime(nowMs, expiresIn)
  return expiresAt === undefined || expiresAt === null ? expiresAt : new Date(expiresAt).getTime()
}

export const addLifetime = (nowMs: number, lifetime: Lifetime): number =>
  Math.ceil(nowMs + (parseLifetimeMs(lifetime) as number))

function parseLifetimeMs(value: unknown): number | undefined {
  const [, days] = typeof value === 'string' ? (/^(\d{1,6})d$/.exec(value) ?? []) : []
  const ms =
    days !== undefined ? Number(days) * dayMs : typeof value === 'string' ? parseDuration(value) : value
  return typeof ms === 'number' && ms >= 0 && ms <= maxMs ? ms : undefined
}

const dayMs = 86_400_000
/** Ten thousand years. */
const maxMs = 3_652_500 * dayMs

/** A date in the format of RFC 3339, with or without a time. */
const timestamp = z.union([z.iso.datetime({ offset: true }), z.iso.date()])

function isTimestamp(value: unknown): boolean {
  if (typeof value === 'string' && !timestamp.safeParse(value).success) return false
  const at = value instanceof Date || typeof value === 'string' ? new Date(value).getTime() : Number.NaN
  return Math.abs(at) <= maxMs
}
