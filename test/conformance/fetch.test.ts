import { fetchHandler } from '../support/fetch.ts'
import { conformanceSuite } from './suite.ts'

conformanceSuite('fetch', fetchHandler, {
  'openai:transport:parsed-body': 'a `Request` carries its body itself; nobody can have parsed it.',
  'ollama:blobs:parsed-body': 'a `Request` carries its body itself; nobody can have read it.',
  'a body over the limit: a 413, and the connection serves the next call':
    'the connection is the host’s, and most close it when a body is not read to its end.',
})
