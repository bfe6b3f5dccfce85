/** The list of what needs attention. */
import { useQueries, useQuery } from '@tanstack/preact-query'
import { Link } from 'wouter-preact'
import { admin, read } from '../../api/client.ts'
import type { ApiKey } from '../../api/types.ts'
import { Icon } from '../../components/icon.tsx'
import { Section } from '../../components/page.tsx'
import { usePendingRequests } from '../../limits/pending-requests.ts'
import { usePrices } from '../../prices/use-prices.ts'
import { keyQuery, keysKey } from '../keys/queries.ts'
import {
  type AttentionItem,
  batchesOf,
  errorsOf,
  expiryOf,
  missingPricesOf,
  requestsOf,
  spendingOf,
  unpricedOf,
} from './attention.ts'
import { daysOf, type Range } from './ranges.ts'
import { useTraffic } from './traffic.ts'
import { sumGroups } from './traffic-sums.ts'

export function NeedsAttention({ range }: { readonly range: Range }) {
  const items = useAttention(range)
  return (
    <Section title="Needs attention">
      {items === undefined ? null : items.length === 0 ? (
        <p class="muted">Nothing. Errors, used-up limits and open requests appear here.</p>
      ) : (
        <ul class="attention">
          {items.map((item) => (
            <li key={item.id} class={`attention-item ${item.tone}`}>
              <Icon name="warning" />
              <p>{item.text}</p>
              <Link href={item.href}>{item.action}</Link>
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}

const all = { model: '', key: '' }
const minuteMs = 60_000
const polling = { staleTime: minuteMs, refetchInterval: minuteMs }
/** The keys with most calls. Those that nobody uses can wait. */
const maxKeys = 10

/** @returns undefined while the traffic is unknown */
function useAttention(range: Range): readonly AttentionItem[] | undefined {
  const models = useTraffic(range, all, 'model')
  const keys = useBusyKeys(range)
  const requests = usePendingRequests()
  const prices = usePrices()
  const newest = useNewestKeys()
  const batches = useQuery({
    queryKey: ['batches', 'failed'],
    queryFn: ({ signal }) =>
      read(admin.GET('/batches', { params: { query: { status: 'failed', limit: 100 } }, signal })),
    ...polling,
    retry: false,
  }).data
  const usage = useQuery({
    queryKey: ['usage', 'model', range.id],
    queryFn: ({ signal }) =>
      read(admin.GET('/usage', { params: { query: { by: 'model', ...daysOf(range, new Date()) } }, signal })),
    ...polling,
  }).data
  if (models.data === undefined) return undefined
  const since = new Date(models.data.times[0] ?? 0)
  const failed = batches?.data.filter(({ createdAt }) => new Date(createdAt) >= since) ?? []
  return [
    ...errorsOf(sumGroups(models.data)),
    ...batchesOf(failed.length, batches?.next !== undefined && failed.length === batches.data.length),
    ...spendingOf(keys),
    ...expiryOf(keys, new Date()),
    ...requestsOf(requests.count, requests.hasMore),
    ...unpricedOf(usage?.data ?? []),
    ...missingPricesOf(
      prices?.unpricedModels ?? [],
      (prices?.data.length ?? 0) > 0 ||
        [...keys, ...(newest ?? [])].some(({ spendingLimit }) => spendingLimit),
    ),
  ].sort((a, b) => Number(a.tone === 'warning') - Number(b.tone === 'warning'))
}

/** The newest keys may not have called yet. */
const useNewestKeys = (): readonly ApiKey[] | undefined =>
  useQuery({
    queryKey: [...keysKey, 'newest'],
    queryFn: ({ signal }) =>
      read(admin.GET('/keys', { params: { query: { status: 'active', limit: 50 } }, signal })),
    ...polling,
  }).data?.data

function useBusyKeys(range: Range): readonly ApiKey[] {
  const traffic = useTraffic(range, all, 'key').data
  const ids = (traffic ? sumGroups(traffic) : [])
    .filter(({ isKey }) => isKey)
    .slice(0, maxKeys)
    .map(({ id }) => id)
  return useQueries({
    queries: ids.map((id) => ({ ...keyQuery(id), staleTime: minuteMs, retry: false })),
    combine: (results) => results.flatMap(({ data }) => (data ? [data] : [])),
  })
}
