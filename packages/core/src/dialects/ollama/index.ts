/** The Ollama API. Its reference: docs.ollama.com/api. */
import { defineDialect } from '../dialect.ts'
import { embed, legacyEmbeddings } from './embed.ts'
import { renderError, renderErrorFrame } from './errors.ts'
import { chat, generate } from './handlers.ts'
import { running, show, tags, version } from './models.ts'

export const ollama = defineDialect({
  name: 'ollama',
  isSpokenBy: ({ path }) => /^\/(api(\/|$)|$)/.test(path),
  // Clients look at the root to find out whether a server is there, and some read what it says.
  home: 'Ollama is running',
  requestIdHeader: 'x-request-id',
  renderError,
  renderErrorFrame,
  routes: [
    ['POST', '/api/generate', generate],
    ['POST', '/api/chat', chat],
    ['POST', '/api/embed', embed],
    ['POST', '/api/embeddings', legacyEmbeddings],
    ['GET', '/api/tags', tags],
    ['POST', '/api/show', show],
    ['GET', '/api/ps', running],
    ['GET', '/api/version', version],
  ],
})
