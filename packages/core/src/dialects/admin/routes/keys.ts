/** Routes of keys. */
import type * as core from '../../../accounts/keys/keys.ts'
import { KeyChanges, KeySettings, parseSettings, Rotation } from '../../../accounts/keys/schema.ts'
import type * as settings from '../../../accounts/keys/settings.ts'
import type { Llm } from '../../../llm.ts'
import { type AdminRoute, parsePage, toPage } from '../route.ts'
import { ApiKey, KeySearch, KeyStatus, KeyWithSecret, LimitStatus, ShownKey } from '../schema/keys.ts'
import { After, Limit, listOf, pageOf } from '../schema/lists.ts'

export const keyRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/keys',
    name: 'listKeys',
    summary: 'List keys, newest first.',
    query: { search: KeySearch, status: KeyStatus, limit: Limit, after: After },
    response: pageOf(ShownKey),
    handle: async ({ llm, query }) => {
      const page = parsePage(query)
      const search = parseSettings(KeySearch.optional(), query('search'))
      const status = parseSettings(KeyStatus.optional(), query('status'))
      const keys = await llm.keys.list({ ...page, search, status })
      return toPage(await withSpending(llm, keys), page, ({ id }) => id)
    },
  },
  {
    method: 'POST',
    path: '/keys',
    name: 'createKey',
    summary: 'Create a key. Only this response contains its secret.',
    body: KeySettings,
    response: KeyWithSecret,
    status: 201,
    handle: ({ llm, body }) => llm.keys.create(body as settings.KeySettings),
  },
  {
    method: 'GET',
    path: '/keys/:id',
    name: 'getKey',
    summary: 'Get a key.',
    response: ShownKey,
    handle: async ({ llm, id }) => (await withSpending(llm, [await llm.keys.get(id)]))[0],
  },
  {
    method: 'POST',
    path: '/keys/:id',
    name: 'updateKey',
    summary: 'Update the given settings of a key. null removes a setting.',
    body: KeyChanges,
    canConflict: true,
    response: ApiKey,
    describeBefore: async ({ llm, id, body }) => {
      const key: Readonly<Record<string, unknown>> = { ...(await llm.keys.get(id)) }
      const names = Object.keys(body as object).map((name) => (name === 'expiresIn' ? 'expiresAt' : name))
      return { changes: { before: Object.fromEntries(names.map((name) => [name, key[name] ?? null])) } }
    },
    handle: ({ llm, id, body }) => llm.keys.update(id, body as settings.KeyChanges),
  },
  {
    method: 'POST',
    path: '/keys/:id/rotate',
    name: 'rotateKey',
    summary: 'Rotate a key: create another secret and expire the previous ones.',
    body: Rotation,
    isBodyOptional: true,
    canConflict: true,
    response: KeyWithSecret,
    handle: ({ llm, id, body }) => llm.keys.rotate(id, body as Parameters<Llm['keys']['rotate']>[1]),
  },
  {
    method: 'POST',
    path: '/keys/:id/expire-previous-secrets',
    name: 'expirePreviousSecrets',
    summary: 'Expire the previous secrets of a rotated key now, and end the sessions of the key.',
    canConflict: true,
    response: ApiKey,
    handle: ({ llm, id }) => llm.keys.expirePreviousSecrets(id),
  },
  {
    method: 'POST',
    path: '/keys/:id/revoke',
    name: 'revokeKey',
    summary: 'Revoke a key, from the next call on.',
    response: ApiKey,
    handle: ({ llm, id }) => llm.keys.revoke(id),
  },
  {
    method: 'GET',
    path: '/keys/:id/limits',
    name: 'getKeyLimits',
    summary: 'Get the state of the limits per minute and per day of a key. Empty if it has none.',
    response: listOf(LimitStatus),
    handle: async ({ llm, id }) => ({ data: await llm.limits.of(await llm.keys.get(id)) }),
  },
]

/** Adds what the keys with a spending limit have spent. */
export async function withSpending(llm: Llm, keys: readonly core.ApiKey[]) {
  const spending = await llm.usage.spending(keys)
  return keys.map((key) => {
    const { nanoUsd, limitNanoUsd, ...state } = spending.get(key.id) ?? {}
    return {
      ...key,
      ...(nanoUsd !== undefined && {
        spending: { nanoUsd: `${nanoUsd}`, limitNanoUsd: `${limitNanoUsd}`, ...state },
      }),
    }
  })
}
