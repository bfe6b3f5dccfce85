/** The routes of models: POST /llm/v1/chat/completions and the like, for users of the app. */
import { routesFor } from '@modelmount/core'
import { toFetchHandler } from '@modelmount/core/http'
import { findUser, llm } from '../../../llm.js'

const handle = toFetchHandler(routesFor(), llm, {
  prefix: '/llm',
  authenticate: (request) => {
    const user = findUser(request)
    return user && { id: user }
  },
})

export { handle as DELETE, handle as GET, handle as HEAD, handle as POST }
