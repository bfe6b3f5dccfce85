/** Routes of keys. */
import { KeyChanges, KeySettings, Rotation } from '../../../accounts/keys/schema.ts'
import type * as settings from '../../../accounts/keys/settings.ts'
import type { Llm } from '../../../llm.ts'
import { type AdminRoute, parsePage, toPage } from '../route.ts'
import { ApiKey, KeyWithSecret, LimitStatus } from '../schema/keys.ts'
import { After, Limit, listOf, pageOf } from '../schema/lists.ts'

export const keyRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/keys',
    name: 'listKeys',
    summary: 'List keys, newest first.',
    query: { limit: Limit, after: After },
    response: pageOf(ApiKey),
    handle: async ({ llm, query }) => {
      const page = parsePage(query)
      return toPage(await llm.keys.list(page), page, ({ id }) => id)
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
    response: ApiKey,
    handle: ({ llm, id }) => llm.keys.get(id),
  },
  {
    method: 'POST',
    path: '/keys/:id',
    name: 'updateKey',
    summary: 'Update the given settings of a key. null removes a setting.',
    body: KeyChanges,
    canConflict: true,
    response: ApiKey,
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
