/** The Anthropic API. Reference: platform.claude.com/docs/en/api. */
import { empty } from '../../http/respond.ts'
import { defineDialect } from '../dialect.ts'
import {
  batchResults,
  cancelBatch,
  createBatch,
  deleteBatch,
  listBatches,
  retrieveBatch,
} from './batches/handlers.ts'
import { countTokens } from './count-tokens.ts'
import { renderError, renderErrorFrame } from './errors.ts'
import { messages } from './handlers.ts'
import { limitHeaders } from './limit-headers.ts'
import { listModels, retrieveModel } from './models.ts'

export const anthropic = defineDialect({
  name: 'anthropic',
  // Anthropic clients always send this header, OpenAI clients never do. Both may send `authorization`.
  isSpokenBy: (request) =>
    request.header('anthropic-version') !== undefined || /^\/v1\/messages(\/|$)/.test(request.path),
  requestIdHeader: 'request-id',
  limitHeaders,
  renderError,
  renderErrorFrame,
  routes: [
    ['POST', '/v1/messages', messages],
    ['POST', '/v1/messages/count_tokens', countTokens],
    ['POST', '/v1/messages/batches', createBatch],
    ['GET', '/v1/messages/batches', listBatches],
    ['GET', '/v1/messages/batches/:id', retrieveBatch],
    ['DELETE', '/v1/messages/batches/:id', deleteBatch],
    ['POST', '/v1/messages/batches/:id/cancel', cancelBatch],
    ['GET', '/v1/messages/batches/:id/results', batchResults],
    // Telemetry of Claude Code, which is not kept.
    ['POST', '/api/event_logging/batch', async () => empty(204)],
    ['GET', '/v1/models', listModels],
    ['GET', '/v1/models/*model', retrieveModel],
  ],
})
