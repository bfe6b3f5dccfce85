import { expect, test } from 'vitest'
import type { LlmClient } from '../../calls/client.ts'
import type { HttpRequest } from '../../http/message.ts'
import type { Llm } from '../../llm.ts'
import type { RouteCall } from '../dialect.ts'
import { listModels } from './models.ts'

/** Models in no order. `a` is the newest and `e` the oldest. */
const all = ['e', 'a', 'c', 'b', 'd'].map((name) => ({
  name,
  path: `/models/${name}.gguf`,
  sizeBytes: 1,
  modifiedAt: new Date(1_700_000_000_000 - name.charCodeAt(0) * 1_000),
  isBuiltIn: false,
}))

async function page(query: Readonly<Record<string, string>>): Promise<object> {
  const request = { query: (name) => query[name], queryAll: () => [] } as Partial<HttpRequest>
  const llm = {
    models: { list: async () => all, aliases: async () => [], snapshots: async () => [] },
  } as unknown as LlmClient
  const { body } = await listModels({ request, llm } as RouteCall, {} as Llm)
  const { data, has_more, first_id, last_id } = JSON.parse(body as string)
  return { ids: data.map(({ id }: { id: string }) => id).join(''), has_more, first_id, last_id }
}

test.each([
  [{}, 'abcde', false],
  [{ limit: '2' }, 'ab', true],
  [{ limit: '2', after_id: 'b' }, 'cd', true],
  [{ limit: '2', after_id: 'd' }, 'e', false],
  [{ after_id: 'e' }, '', false],
  [{ limit: '2', before_id: 'e' }, 'cd', true],
  [{ limit: '2', before_id: 'c' }, 'ab', false],
  [{ before_id: 'a' }, '', false],
  [{ after_id: 'gone' }, '', false],
  [{ before_id: 'gone' }, '', false],
])('the query %j returns the models %j', async (query, ids, has_more) => {
  expect(await page(query)).toEqual({
    ids,
    has_more,
    first_id: ids.at(0) ?? null,
    last_id: ids.at(-1) ?? null,
  })
})

test.each([
  [{ limit: '0' }, 'limit: Input should be greater than or equal to 1'],
  [{ limit: '1001' }, 'limit: Input should be less than or equal to 1000'],
  [{ limit: 'many' }, 'limit: Input should be a valid integer'],
  [{ limit: '1e2' }, 'limit: Input should be a valid integer'],
  [{ after_id: 'a', before_id: 'c' }, 'before_id: Only one of before_id and after_id may be given'],
])('the query %j is rejected with %j', async (query, message) => {
  await expect(page(query)).rejects.toMatchObject({ code: 'invalid_request', message })
})
