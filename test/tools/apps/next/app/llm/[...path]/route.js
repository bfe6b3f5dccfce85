import { routesFor } from '@modelmount/core'
import { toFetchHandler } from '@modelmount/core/http'
import { llm } from '../../../llm.js'

const handle = toFetchHandler(routesFor(), llm, {
  // Replace this by the session of your app.
  authenticate: (request) => (request.headers.has('cookie') ? { id: 'visitor' } : undefined),
})

/** Removes the prefix of this route. */
const route = (request) => {
  const url = new URL(request.url)
  url.pathname = url.pathname.replace(/^\/llm/, '')
  return handle(new Request(url, request))
}

export { route as DELETE, route as GET, route as HEAD, route as POST }
