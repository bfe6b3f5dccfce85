/** The OpenAI API. Reference: platform.openai.com/docs/api-reference. */
import { type DialectSpec, defineDialect } from '../dialect.ts'
import { cancelBatch, createBatch, listBatches, retrieveBatch } from './batches/handlers.ts'
import {
  createConversation,
  createItems,
  deleteConversation,
  deleteItem,
  listItems,
  retrieveConversation,
  retrieveItem,
  updateConversation,
} from './conversations/handlers.ts'
import { embeddings } from './embeddings.ts'
import { renderError, renderErrorFrame } from './errors.ts'
import { mapCompletionField, mapResponsesField, withFieldNames } from './field-names.ts'
import { createFile, deleteFile, fileContent, listFiles, retrieveFile } from './files/handlers.ts'
import { chatCompletions, completions } from './handlers.ts'
import { deleteModel, listModels, retrieveModel } from './models.ts'
import { applyTemplate, countChatTokens, detokenize, tokenize } from './prompts.ts'
import { rerank } from './rerank.ts'
import { countInputTokens, createResponse } from './responses/handlers.ts'
import {
  cancelResponse,
  deleteResponse,
  listInputItems,
  rejectCompaction,
  retrieveResponse,
} from './responses/stored-responses.ts'

const spec: DialectSpec<'openai'> = {
  name: 'openai',
  requestIdHeader: 'x-request-id',
  renderError,
  renderErrorFrame,
  routes: [
    ['POST', '/v1/chat/completions', withFieldNames(mapCompletionField, chatCompletions)],
    ['POST', '/v1/chat/completions/input_tokens', withFieldNames(mapCompletionField, countChatTokens)],
    ['POST', '/v1/completions', withFieldNames(mapCompletionField, completions)],
    ['POST', '/v1/embeddings', withFieldNames(mapCompletionField, embeddings)],
    ['POST', '/v1/rerank', rerank],
    ['POST', '/v1/responses', withFieldNames(mapResponsesField, createResponse)],
    ['POST', '/v1/responses/input_tokens', withFieldNames(mapResponsesField, countInputTokens)],
    ['POST', '/v1/responses/compact', rejectCompaction],
    ['GET', '/v1/responses/:id', retrieveResponse],
    ['DELETE', '/v1/responses/:id', deleteResponse],
    ['GET', '/v1/responses/:id/input_items', listInputItems],
    ['POST', '/v1/responses/:id/cancel', cancelResponse],
    ['POST', '/v1/conversations', createConversation],
    ['GET', '/v1/conversations/:id', retrieveConversation],
    ['POST', '/v1/conversations/:id', updateConversation],
    ['DELETE', '/v1/conversations/:id', deleteConversation],
    ['POST', '/v1/conversations/:id/items', createItems],
    ['GET', '/v1/conversations/:id/items', listItems],
    ['GET', '/v1/conversations/:id/items/:item', retrieveItem],
    ['DELETE', '/v1/conversations/:id/items/:item', deleteItem],
    ['POST', '/v1/batches', createBatch],
    ['GET', '/v1/batches', listBatches],
    ['GET', '/v1/batches/:id', retrieveBatch],
    ['POST', '/v1/batches/:id/cancel', cancelBatch],
    ['POST', '/v1/files', createFile],
    ['GET', '/v1/files', listFiles],
    ['GET', '/v1/files/:id', retrieveFile],
    ['DELETE', '/v1/files/:id', deleteFile],
    ['GET', '/v1/files/:id/content', fileContent],
    ['GET', '/v1/models', listModels],
    ['GET', '/v1/models/*model', retrieveModel],
    ['DELETE', '/v1/models/*model', deleteModel, 'models'],
  ],
}

export const openai = defineDialect(spec)

/** The OpenAI API with routes of llama.cpp's server. */
export const openaiWithLlamaServer = defineDialect({
  ...spec,
  routes: [
    ...spec.routes,
    ['POST', '/rerank', rerank],
    ['POST', '/tokenize', tokenize],
    ['POST', '/detokenize', detokenize],
    ['POST', '/apply-template', withFieldNames(mapCompletionField, applyTemplate)],
  ],
})
