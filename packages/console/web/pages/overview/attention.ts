/** What an administrator should look at. */
import type { ApiKey } from '../../api/types.ts'
import { formatUsd, fraction } from '../../format/money.ts'
import { formatCount, formatPercent } from '../../format/numbers.ts'
import { listNames } from '../../prices/prices.ts'
import type { TrafficGroup } from './traffic-sums.ts'

export interface AttentionItem {
  readonly id: string
  readonly tone: 'warning' | 'danger'
  readonly text: string
  readonly href: string
  /** Text of the link. */
  readonly action: string
}

/** Models with few calls are left out: one error among three calls says little. */
const minCalls = 20
const minErrorShare = 0.05

export const errorsOf = (models: readonly TrafficGroup[]): readonly AttentionItem[] =>
  models
    .filter(({ calls, errors }) => calls >= minCalls && errors / calls >= minErrorShare)
    .map(({ id, name, calls, errors }) => ({
      id: `errors ${id}`,
      tone: 'danger',
      text: `${formatPercent(errors / calls)} of the calls to ${id === '' ? 'unknown models' : name} failed.`,
      href: `/overview?${new URLSearchParams(id === '' ? { by: 'model' } : { model: id })}`,
      action: 'Show its calls',
    }))

const nearLimit = 0.8

export const spendingOf = (keys: readonly ApiKey[]): readonly AttentionItem[] =>
  keys.flatMap(({ id, name, status, spending }): AttentionItem[] => {
    if (spending === undefined || status !== 'active') return []
    const part = fraction(spending.nanoUsd, spending.limitNanoUsd)
    if (part < nearLimit) return []
    const limit = formatUsd(spending.limitNanoUsd)
    return [
      {
        id: `spending ${id}`,
        tone: part >= 1 ? 'danger' : 'warning',
        text:
          part >= 1
            ? `${name} has reached its spending limit of ${limit}. Its calls are refused.`
            : `${name} has spent ${formatPercent(part)} of its limit of ${limit}.`,
        href: `/keys/${id}`,
        action: 'Open the key',
      },
    ]
  })

const soonMs = 7 * 86_400_000

export const expiryOf = (keys: readonly ApiKey[], now: Date): readonly AttentionItem[] =>
  keys.flatMap(({ id, name, status, expiresAt }): AttentionItem[] => {
    if (expiresAt === undefined || status === 'revoked') return []
    const ms = new Date(expiresAt).getTime() - now.getTime()
    if (ms > soonMs) return []
    const days = Math.ceil(ms / 86_400_000)
    return [
      {
        id: `expiry ${id}`,
        tone: ms <= 0 ? 'danger' : 'warning',
        text:
          ms <= 0
            ? `${name} has expired, and was used in this range.`
            : `${name} expires in ${days === 1 ? 'a day' : `${days} days`}.`,
        href: `/keys/${id}`,
        action: 'Open the key',
      },
    ]
  })

/** @param hasMore whether the list goes on */
export const requestsOf = (count: number, hasMore: boolean): readonly AttentionItem[] =>
  count === 0
    ? []
    : [
        {
          id: 'limit requests',
          tone: 'warning',
          text: `${countOf(count, hasMore, 'request')} for higher limits ${count === 1 && !hasMore ? 'waits' : 'wait'} for a decision.`,
          href: '/limits',
          action: 'Decide',
        },
      ]

export const batchesOf = (count: number, hasMore: boolean): readonly AttentionItem[] =>
  count === 0
    ? []
    : [
        {
          id: 'failed batches',
          tone: 'danger',
          text: `${countOf(count, hasMore, 'batch', 'batches')} failed: the file with the requests was invalid.`,
          href: '/batches?status=failed',
          action: 'Show failed batches',
        },
      ]

/** @param hasPrices whether the app uses prices, or spending limits that need them */
export const missingPricesOf = (models: readonly string[], hasPrices: boolean): readonly AttentionItem[] =>
  models.length === 0 || !hasPrices
    ? []
    : [
        {
          id: 'missing prices',
          tone: 'warning',
          text: `Keys with a spending limit cannot use models without a price: ${listNames(models)}.`,
          href: '/models',
          action: 'Show models',
        },
      ]

/** @param rows usage by model */
export const unpricedOf = (
  rows: readonly { readonly group: string; readonly unpricedCalls: number }[],
): readonly AttentionItem[] =>
  rows
    .filter(({ unpricedCalls }) => unpricedCalls > 0)
    .map(({ group, unpricedCalls }) => ({
      id: `unpriced ${group}`,
      tone: 'warning',
      text: `${countOf(unpricedCalls, false, 'call')} of ${group} cost nothing, because the model has no price.`,
      href: '/usage?by=model',
      action: 'Show usage by model',
    }))

function countOf(count: number, hasMore: boolean, one: string, many = `${one}s`): string {
  return `${formatCount(count)}${hasMore ? ' or more' : ''} ${count === 1 && !hasMore ? one : many}`
}
