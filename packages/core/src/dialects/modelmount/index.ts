/** The API for other apps with Modelmount, which call the engine of this one: see `engine/wire/app-api.ts`. */
import { paths } from '../../engine/wire/app-api.ts'
import { toForwardedError } from '../../engine/wire/wire-error.ts'
import { statusOf } from '../../errors.ts'
import { json } from '../../http/respond.ts'
import { jsonLine } from '../../http/streams.ts'
import { retryHeaders } from '../../limits/headers.ts'
import { defineDialect } from '../dialect.ts'
import * as handlers from './handlers.ts'
import { listModels } from './models.ts'

export const modelmount = defineDialect({
  name: 'modelmount',
  isSpokenBy: ({ path }) => path.startsWith('/modelmount/'),
  requestIdHeader: 'x-request-id',
  renderError: (error) => json({ error: toForwardedError(error) }, statusOf(error.code), retryHeaders(error)),
  renderErrorFrame: (error) => jsonLine({ error: toForwardedError(error) }),
  routes: [
    ['POST', paths.generate, handlers.generate, 'fleet'],
    ['POST', paths.countTokens, handlers.countTokens, 'fleet'],
    ['POST', paths.countCachedTokens, handlers.countCachedTokens, 'fleet'],
    ['POST', paths.render, handlers.render, 'fleet'],
    ['POST', paths.embed, handlers.embed, 'fleet'],
    ['POST', paths.rerank, handlers.rerank, 'fleet'],
    ['POST', paths.tokenize, handlers.tokenize, 'fleet'],
    ['POST', paths.detokenize, handlers.detokenize, 'fleet'],
    ['POST', paths.tokenPieces, handlers.tokenPieces, 'fleet'],
    ['POST', paths.load, handlers.load, 'fleet'],
    ['POST', paths.unload, handlers.unload, 'fleet'],
    ['POST', paths.deletePromptStates, handlers.deletePromptStates, 'fleet'],
    ['GET', paths.models, listModels, 'fleet'],
  ],
})
