/** Names of the limits of keys, and their texts in forms. */
import type { Limits } from '../api/types.ts'
import { formatCount } from '../format/numbers.ts'

export type LimitName = Exclude<keyof Limits, 'perEndUser'>

/** In the order of forms and lists. */
export const limitNames = {
  requestsPerMinute: 'Requests per minute',
  tokensPerMinute: 'Tokens per minute',
  inputTokensPerMinute: 'Input tokens per minute',
  outputTokensPerMinute: 'Output tokens per minute',
  tokensPerDay: 'Tokens per day',
  concurrent: 'Concurrent calls',
  maxOutputTokens: 'Output tokens per call',
} as const satisfies Record<LimitName, string>

export const endUserLimitNames = [
  'requestsPerMinute',
  'tokensPerMinute',
  'inputTokensPerMinute',
  'outputTokensPerMinute',
  'concurrent',
] as const satisfies readonly LimitName[]

/** The limits that are set, as name and number. */
export function listLimits(limits: Limits | undefined): readonly (readonly [name: string, value: string])[] {
  if (limits === undefined) return []
  const own = (Object.keys(limitNames) as LimitName[]).flatMap((name) =>
    toEntry(limitNames[name], limits[name]),
  )
  const perEndUser = endUserLimitNames.flatMap((name) =>
    toEntry(`${limitNames[name]}, each end user`, limits.perEndUser?.[name]),
  )
  return [...own, ...perEndUser]
}

const toEntry = (name: string, value: number | undefined): readonly (readonly [string, string])[] =>
  value === undefined ? [] : [[name, formatCount(value)]]
