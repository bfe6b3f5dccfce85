/** The Ollama API. Reference: docs.ollama.com/api. */
import { type DialectSpec, defineDialect } from '../dialect.ts'
import { addBlob, findBlob } from './blobs.ts'
import { account, recommendations, signOut, status, webFetch, webSearch } from './cloud.ts'
import { embed, legacyEmbeddings } from './embeddings.ts'
import { renderError, renderErrorFrame } from './errors.ts'
import { chat, generate } from './handlers.ts'
import { copy, getVersion, listLoadedModels, listModels, remove } from './models.ts'
import { show } from './show.ts'
import { create, pull, push } from './transfers.ts'

const spec: DialectSpec<'ollama'> = {
  name: 'ollama',
  // A path of one segment, such as `/metrics`, counts as Ollama's, unless an OpenAI or Anthropic SDK sent
  // the request.
  isSpokenBy: ({ path, header }) =>
    /^\/(api(\/|$)|$)/.test(path) ||
    (/^\/(?!v1$)[^/]+$/.test(path) && header('x-stainless-lang') === undefined),
  // Clients request the root as a health check, and some match on this text.
  home: 'Ollama is running',
  requestIdHeader: 'x-request-id',
  renderError,
  renderErrorFrame,
  routes: [
    ['POST', '/api/generate', generate],
    ['POST', '/api/chat', chat],
    ['POST', '/api/embed', embed],
    ['POST', '/api/embeddings', legacyEmbeddings],
    ['GET', '/api/tags', listModels],
    ['POST', '/api/show', show],
    ['GET', '/api/ps', listLoadedModels],
    ['GET', '/api/version', getVersion],

    ['POST', '/api/create', create, 'models'],
    ['POST', '/api/pull', pull, 'models'],
    ['POST', '/api/push', push, 'models'],
    ['POST', '/api/copy', copy, 'models'],
    ['DELETE', '/api/delete', remove, 'models'],
    ['HEAD', '/api/blobs/:digest', findBlob, 'models'],
    ['POST', '/api/blobs/:digest', addBlob, 'models'],
  ],
}

export const ollama = defineDialect(spec)

/** The Ollama API with the routes of Ollama's cloud. Ollama's own server has them, too. */
export const ollamaWithCloud = defineDialect({
  ...spec,
  routes: [
    ...spec.routes,
    ['GET', '/api/status', status],
    ['POST', '/api/me', account],
    ['POST', '/api/signout', signOut],
    ['DELETE', '/api/user/keys/:key', signOut],
    ['GET', '/api/experimental/model-recommendations', recommendations],
    ['POST', '/api/experimental/web_search', webSearch],
    ['POST', '/api/experimental/web_fetch', webFetch],
  ],
})
