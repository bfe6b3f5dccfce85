/**
 * The operation of a call. Only `generate`, `embed` and `rerank` use tokens. A call to the routes of the admin API,
 * and one to the routes of batches, files and stored responses, has no model.
 */
export type CallKind =
  | 'generate'
  | 'embed'
  | 'rerank'
  | 'count'
  | 'render'
  | 'tokenize'
  | 'detokenize'
  | 'load'
  | 'unload'
  | 'admin'
  | 'storage'
