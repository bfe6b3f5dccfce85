/** The OpenAI API. Its reference: platform.openai.com/docs/api-reference. */
import { defineDialect } from '../dialect.ts'
import { embeddings } from './embeddings.ts'
import { renderError, renderErrorFrame } from './errors.ts'
import { naming, responseNames, usualNames } from './field-names.ts'
import { chatCompletions, completions } from './handlers.ts'
import { listModels, retrieveModel } from './models.ts'
import { countInputTokens, createResponse, noResponse } from './responses/handlers.ts'
import { noTranscriptions } from './transcriptions.ts'

export const openai = defineDialect({
  name: 'openai',
  requestIdHeader: 'x-request-id',
  renderError,
  renderErrorFrame,
  routes: [
    ['POST', '/v1/chat/completions', naming(usualNames, chatCompletions)],
    ['POST', '/v1/completions', naming(usualNames, completions)],
    ['POST', '/v1/embeddings', naming(usualNames, embeddings)],
    ['POST', '/v1/responses', naming(responseNames, createResponse)],
    ['POST', '/v1/responses/input_tokens', naming(responseNames, countInputTokens)],
    ['GET', '/v1/responses/:id', noResponse],
    ['DELETE', '/v1/responses/:id', noResponse],
    ['GET', '/v1/responses/:id/input_items', noResponse],
    ['POST', '/v1/responses/:id/cancel', noResponse],
    ['POST', '/v1/audio/transcriptions', noTranscriptions],
    ['GET', '/v1/models', listModels],
    ['GET', '/v1/models/*model', retrieveModel],
  ],
})
