/** The request fields that clients know, and what becomes of each. */

/** `taken`: the field has its effect. `refused`: this value is a 400 that names the field. `ignored`: why it may be. */
export type Field =
  | 'taken'
  | { readonly refused: unknown }
  | { readonly ignored: string; readonly value?: unknown }
export type Fields = Readonly<Record<string, Field>>

const refused = (value: unknown): Field => ({ refused: value })
const ignored = (reason: string, value: unknown = 'any'): Field => ({ ignored: reason, value })
const taken = (...names: readonly string[]): Fields =>
  Object.fromEntries(names.map((name) => [name, 'taken']))
const ignoredAs = (reason: string, ...names: readonly string[]): Fields =>
  Object.fromEntries(names.map((name) => [name, ignored(reason)]))

const speed = 'It changes how fast an answer comes, or what it costs.'
const internal = 'It selects or describes a part of the other server.'
const dependent = 'It has an effect only with another field, which is refused.'
const media = 'It has an effect only on media, which are refused.'
const label = 'It is a label for logs.'

/** Fields of other local servers for text, in all routes that generate it. */
const local: Fields = {
  ...taken(
    'top_k',
    'min_p',
    'repeat_penalty',
    'repetition_penalty',
    'repeat_last_n',
    'min_tokens',
    'ignore_eos',
  ),
  ...taken('dry_multiplier', 'dry_base', 'dry_allowed_length', 'dry_penalty_last_n', 'dry_sequence_breakers'),
  ...taken('xtc_probability', 'xtc_threshold', 'grammar', 'json_schema', 'n_predict'),
  ...taken('guided_json', 'guided_regex', 'guided_choice', 'guided_grammar', 'structured_outputs'),
  ...taken('return_progress', 'timings_per_token'),
  typical_p: refused(0.5),
  typ_p: refused(0.5),
  mirostat: refused(2),
  top_n_sigma: refused(1),
  dynatemp_range: refused(0.5),
  min_keep: refused(2),
  adaptive_target: refused(0.5),
  samplers: refused(['temperature', 'top_k']),
  n_cmpl: refused(2),
  n_indent: refused(2),
  n_probs: refused(5),
  post_sampling_probs: refused(true),
  t_max_predict_ms: refused(1_000),
  lora: refused([{ id: 0, scale: 1 }]),
  return_tokens: refused(true),
  response_fields: refused(['content']),
  grammar_lazy: refused(true),
  grammar_triggers: refused([{ type: 0, value: 'a' }]),
  preserved_tokens: refused(['<think>']),
  generation_prompt: refused('<think>'),
  stop_token_ids: refused([1]),
  include_stop_str_in_output: refused(true),
  skip_special_tokens: refused(false),
  bad_words: refused(['no']),
  allowed_token_ids: refused([1]),
  logits_processors: refused(['a']),
  vllm_xargs: refused({ a: 1 }),
  use_beam_search: refused(true),
  truncate_prompt_tokens: refused(10),
  prompt_logprobs: refused(1),
  return_token_ids: refused(true),
  return_tokens_as_token_ids: refused(true),
  guided_whitespace_pattern: refused(' *'),
  ...ignoredAs(dependent, 'mirostat_tau', 'mirostat_eta', 'dynatemp_exponent', 'adaptive_decay'),
  ...ignoredAs(dependent, 'length_penalty', 'early_stopping', 'spaces_between_special_tokens'),
  ...ignoredAs(
    speed,
    'cache_prompt',
    'id_slot',
    'n_cache_reuse',
    'backend_sampling',
    'sse_ping_interval',
    'priority',
  ),
  ...ignoredAs(speed, 'speculative.n_max', 'speculative.n_min', 'speculative.p_min', 'kv_transfer_params'),
  ...ignoredAs(internal, 'chat_format', 'chat_parser', 'guided_decoding_backend'),
  ...ignoredAs(speed, 'speculative.type', 'speculative.ngram_size_n', 'speculative.ngram_size_m'),
  ...ignoredAs(speed, 'speculative.ngram_min_hits'),
  include_usage: ignored('It is a field of `stream_options`, where it is taken.', true),
  ...ignoredAs(label, 'request_id', 'verbose'),
  ...ignoredAs('The context is never shifted: an answer ends when it is full.', 'n_keep', 'n_discard'),
  t_max_prompt_ms: ignored('The other server does not implement it either.'),
  cache_salt: ignored('Each tenant has a prompt cache of its own.'),
}

/** Fields of OpenAI's API in all routes that generate text. */
const openai: Fields = {
  ...taken('model', 'stream', 'stream_options', 'temperature', 'top_p', 'user', 'safety_identifier'),
  ...taken('stop', 'seed', 'frequency_penalty', 'presence_penalty', 'logit_bias'),
}

const conversation: Fields = {
  ...taken('tools', 'tool_choice', 'parallel_tool_calls', 'chat_template_kwargs', 'enable_thinking'),
  ...taken('add_generation_prompt', 'continue_final_message'),
  reasoning_format: refused('deepseek-legacy'),
  web_search_options: refused({}),
  echo: refused(true),
  parse_tool_calls: refused(false),
  reasoning_budget_tokens: refused(100),
  thinking_budget_tokens: refused(100),
  chat_template: refused('{{ messages }}'),
  documents: refused([{ title: 'a' }]),
  add_special_tokens: refused(true),
  include_reasoning: refused(false),
  moderation: ignored('Nothing here moderates, and the text is that of the model.', {}),
  ...ignoredAs(speed, 'service_tier', 'prompt_cache_options', 'prompt_cache_retention'),
  ...ignoredAs(
    dependent,
    'reasoning_budget_message',
    'reasoning_budget_start_tag',
    'reasoning_budget_end_tags',
  ),
  reasoning_control: ignored(
    'It allows a later request to end the reasoning, and no such request exists.',
    true,
  ),
  ...ignoredAs(media, 'mm_processor_kwargs', 'media_io_kwargs'),
}

const chat: Fields = {
  ...openai,
  ...local,
  ...conversation,
  ...taken('messages', 'n', 'max_tokens', 'max_completion_tokens', 'reasoning_effort', 'response_format'),
  ...taken('logprobs', 'top_logprobs'),
  functions: refused([{ name: 'f' }]),
  function_call: refused({ name: 'f' }),
  modalities: refused(['audio']),
  audio: ignored(dependent, {}),
  prediction: ignored(speed, { type: 'content', content: 'a' }),
  prompt_cache_key: ignored(speed),
  verbosity: ignored('A hint for models that were trained for it. Those that run here were not.', 'low'),
  store: ignored('The route returns the same answer, and has no stored completions.', true),
  metadata: ignored('It belongs to stored completions.', {}),
}

const completions: Fields = {
  ...openai,
  ...local,
  ...taken('prompt', 'suffix', 'echo', 'logprobs', 'response_format', 'n', 'best_of', 'max_tokens'),
  add_special_tokens: refused(false),
}

const responses: Fields = {
  ...openai,
  ...local,
  ...conversation,
  ...taken('input', 'instructions', 'max_output_tokens', 'reasoning', 'text', 'top_logprobs', 'include'),
  ...taken('truncation', 'metadata', 'max_tool_calls', 'prompt_cache_key', 'store', 'generate'),
  ...taken('previous_response_id', 'conversation'),
  n: refused(2),
  prompt: refused({ id: 'a' }),
  background: refused(true),
  context_management: ignored('Nothing is compacted: an input that is too long is an error.', []),
}

const embeddings: Fields = {
  ...taken('model', 'input', 'dimensions', 'encoding_format', 'user'),
  pooling: refused('none'),
  embd_normalize: refused(-1),
  normalize: refused(false),
  truncate_prompt_tokens: refused(10),
  add_special_tokens: refused(false),
  ...ignoredAs(speed, 'priority'),
  ...ignoredAs(label, 'request_id'),
}

const rerank: Fields = {
  ...taken('model', 'query', 'documents', 'top_n', 'return_documents', 'texts', 'return_text'),
  max_tokens_per_doc: refused(10),
  truncate_prompt_tokens: refused(10),
  truncate: refused(true),
  raw_scores: refused(true),
  instruction: refused('Find birds.'),
  ...ignoredAs(speed, 'priority'),
}

const hosted = 'It concerns the accounts, regions and prices of the hosted API.'
const messages: Fields = {
  ...taken(
    'model',
    'messages',
    'system',
    'tools',
    'tool_choice',
    'thinking',
    'output_config',
    'output_format',
  ),
  ...taken(
    'cache_control',
    'max_tokens',
    'stream',
    'metadata',
    'stop_sequences',
    'temperature',
    'top_p',
    'top_k',
  ),
  mcp_servers: refused([{ type: 'url', name: 'a', url: 'http://127.0.0.1' }]),
  thread: refused({ id: 'a' }),
  container: refused('a'),
  ...ignoredAs(
    hosted,
    'inference_geo',
    'user_profile_id',
    'workspace_id',
    'billing_policy',
    'fallback_credit_token',
  ),
  ...ignoredAs(hosted, 'betas', 'fallbacks'),
  ...ignoredAs(speed, 'service_tier', 'speed'),
  diagnostics: ignored('It asks why a prompt was not cached, beside the answer.', {}),
  context_management: ignored(
    'Nothing is removed from a conversation: one that is too long is an error.',
    {},
  ),
  compaction: ignored('Nothing is removed from a conversation: one that is too long is an error.', {}),
}

const ollama: Fields = {
  ...taken(
    'model',
    'stream',
    'options',
    'keep_alive',
    'think',
    'truncate',
    'format',
    'logprobs',
    'top_logprobs',
  ),
  ...taken('_debug_render_only', 'return_progress', 'timings_per_token'),
  shift: ignored('An answer ends when its context is full.', true),
}
const ollamaChat: Fields = { ...ollama, ...taken('messages', 'tools') }
const ollamaGenerate: Fields = {
  ...ollama,
  ...taken('prompt', 'system', 'context', 'raw', 'suffix', 'template'),
  images: refused(['aGk=']),
  ...ignoredAs('It belongs to models that make images.', 'width', 'height', 'steps'),
}
const ollamaEmbed: Fields = taken('model', 'input', 'truncate', 'dimensions', 'options', 'keep_alive')
const noEffect = 'Ollama has removed it, and ignores it, too.'
const ollamaOptions: Fields = {
  ...taken('temperature', 'top_k', 'top_p', 'min_p', 'seed', 'repeat_penalty', 'repeat_last_n', 'stop'),
  ...taken('presence_penalty', 'frequency_penalty', 'num_predict', 'num_ctx'),
  typical_p: refused(0.5),
  num_keep: ignored('The context is never shifted.', 4),
  ...Object.fromEntries(
    ['num_batch', 'num_gpu', 'main_gpu', 'num_thread', 'draft_num_predict'].map((name) => [
      name,
      ignored(speed, 1),
    ]),
  ),
  use_mmap: ignored(speed, true),
  ...ignoredAs(
    noEffect,
    'mirostat',
    'mirostat_tau',
    'mirostat_eta',
    'tfs_z',
    'penalize_newline',
    'numa',
    'low_vram',
  ),
  ...ignoredAs(noEffect, 'f16_kv', 'logits_all', 'vocab_only', 'use_mlock', 'embedding_only'),
}

export const routes = {
  'POST /v1/chat/completions': chat,
  'POST /v1/completions': completions,
  'POST /v1/responses': responses,
  'POST /v1/embeddings': embeddings,
  'POST /v1/rerank': rerank,
  'POST /v1/messages': messages,
  'POST /api/chat': ollamaChat,
  'POST /api/generate': ollamaGenerate,
  'POST /api/embed': ollamaEmbed,
  'options of Ollama': ollamaOptions,
} as const satisfies Readonly<Record<string, Fields>>
