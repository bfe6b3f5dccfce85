/** The OpenAI API. Its reference: platform.openai.com/docs/api-reference. */
import { defineDialect } from '../dialect.ts'
import { embeddings } from './embeddings.ts'
import { renderError, renderErrorFrame } from './errors.ts'
import { chatCompletions, completions } from './handlers.ts'
import { listModels, retrieveModel } from './models.ts'

export const openai = defineDialect({
  name: 'openai',
  requestIdHeader: 'x-request-id',
  renderError,
  renderErrorFrame,
  routes: [
    ['POST', '/v1/chat/completions', chatCompletions],
    ['POST', '/v1/completions', completions],
    ['POST', '/v1/embeddings', embeddings],
    ['GET', '/v1/models', listModels],
    ['GET', '/v1/models/*model', retrieveModel],
  ],
})
