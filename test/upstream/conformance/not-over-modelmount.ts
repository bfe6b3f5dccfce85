import type { NotCarried } from './not-carried.ts'

/** Rows of the conformance table that fail over Modelmount's own API. A listed row must fail. */
export const notOverModelmount: NotCarried = {
  modelFiles: [
    'anthropic:models:list',
    'ollama:show:lists',
    'ollama:show:shape',
    'openai:models:list',
    'openai:models:retrieve',
  ],
  unknownModels: ['ollama:chat:encoder'],
  loading: ['ollama:ps:order', 'ollama:ps:shape', 'ollama:routes:ps'],
  precision: ['ollama:embed:shape', 'ollama:embeddings:shape'],
  otherWords: [
    'a lone surrogate in a message is accepted and returned (OpenAI API)',
    'anthropic:batches:counts',
    'ollama:chat:unload',
    'ollama:embed:no-input',
    'ollama:generate:load',
    'ollama:generate:unload',
    'ollama:names:echoed',
    'ollama:options:defaults',
    'openai:completions:bare-prompt',
  ],
  buffers: ['openai:choices:cancelled'],
}
