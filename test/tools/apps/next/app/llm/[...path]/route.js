import { routesFor } from '@modelmount/core'
import { toFetchHandler } from '@modelmount/core/http'
import { llm } from '../../../llm.js'

const handle = toFetchHandler(routesFor(), llm, {
  prefix: '/llm',
  // Replace this by the session of your app.
  authenticate: (request) => (request.headers.has('cookie') ? { id: 'visitor' } : undefined),
})

export { handle as DELETE, handle as GET, handle as HEAD, handle as POST }
