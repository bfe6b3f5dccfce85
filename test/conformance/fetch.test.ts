import { fetchHandler } from '../support/fetch.ts'
import { conformanceSuite, type Mount } from './suite.ts'

const mount: Mount = (llm, { unknownRoutes, ...options }) =>
  fetchHandler(llm, {
    ...options,
    ...(unknownRoutes !== 'error' && {
      fallback: ({ body }) => new Response(body, { headers: { 'x-answered-by': 'the app' } }),
    }),
  })

conformanceSuite('fetch', mount, {
  'openai:transport:parsed-body': 'A `Request` has no field for a body that an earlier parser has read.',
  'openai:transport:upload-parsed-body':
    'A `Request` has no field for a body that an earlier parser has read.',
  'anthropic:transport:batch-parsed-body':
    'A `Request` has no field for a body that an earlier parser has read.',
  'ollama:blobs:parsed-body': 'A `Request` has no field for a body that an earlier parser has read.',
  'a body over the limit gets a 413, and the connection serves the next call (OpenAI API)':
    'The host owns the connection, and most hosts close it when a body is not read to its end.',
})
