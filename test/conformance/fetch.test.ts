import { routesFor } from '@modelmount/core'
import { toFetchHandler } from '@modelmount/core/http'
import { fetchHost } from '../support/fetch-host.ts'
import { conformanceSuite } from './suite.ts'

conformanceSuite(
  'fetch',
  (llm) => fetchHost(toFetchHandler(routesFor(), llm, { remoteAddress: () => '127.0.0.1' })),
  {
    'openai:transport:parsed-body': 'a `Request` carries its body itself; nobody can have parsed it.',
    'a body over the limit: a 413, and the connection serves the next call':
      'the connection is the host’s, and most close it when a body is not read to its end.',
  },
)
