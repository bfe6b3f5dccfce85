/** Intended differences from the recorded responses, with reasons. */

export interface IntendedDifference {
  readonly reason: string
  /** For client errors, the recorded server answers 5xx. Ours answers 4xx with the same shape of body. */
  readonly clientError?: true
  /** The feature is not implemented yet. */
  readonly notBuilt?: true
  readonly ids: readonly string[]
}

export const intendedDifferences: readonly IntendedDifference[] = [
  {
    reason: 'An error of the client gives a 4xx, not a 5xx.',
    clientError: true,
    ids: [
      ...['465-create-missingblob-nostream', '560-create-license-num', '1402-pull-404-nostream'],
      ...['719-gen-context-neg', '722-gen-template-bad', '742-chat-image-stream'],
      ...['757-gen-opt-temp', '759-gen-opt-stop', '760-gen-opt-stop2', '761-gen-opt-mmap', '762-gen-opt-ctx'],
      ...['763-gen-opt-topk-bool', '764-gen-opt-main_gpu', '886-embed-badopt'],
      ...['774-gen-format-num', '776-gen-format-true', '777-gen-format-xml', '833-chat-format-num'],
      ...['831-chat-tools-noname', '887-embed-chat-model', '888-embeddings-chat-model', '1017-em-chat'],
    ],
  },
  {
    reason: 'The engine does not quantize: uploads have to be quantized.',
    notBuilt: true,
    ids: [
      ...['533-create-quant-q8', '534-create-quant-bad', '535-create-quant-q4_0', '536-create-quant-q8src'],
      ...['537-create-quant-q4km', '538-create-quant-from', '593-show-tinyq', '595-show-tinyq5'],
    ],
  },
  {
    reason: "Beside tool calls, missing content is `null`, as in OpenAI's API.",
    ids: ['975-cc-tools-required', '976-cc-tools-nosupport'],
  },
  {
    reason:
      'The first chunk of a stream that begins with a call or reasoning has `content: null`, as in llama.cpp.',
    ids: ['973-cc-tools-stream', '974-cc-tools-go-stream', '985-cc-reasoning-stream'],
  },
  {
    reason: 'Audio has no routes, so they are unknown to every client.',
    ids: ['1058-transcribe-nofile'],
  },
  {
    reason: "Thinking is returned only on request, and within its own token budget, as in Anthropic's API.",
    ids: ['1032-ms-length', '1051-ms-think', '1052-ms-think-stream'],
  },
  {
    reason: 'This server has no web search.',
    ids: ['1056-ms-websearch'],
  },
  {
    reason: 'The template of a Modelfile always overrides others.',
    ids: ['745-gen-suffix-fim-debug', '746-gen-think-no', '826-chat-tools-unsupported'],
  },
  {
    reason: 'The template of the weights is used as it is, and not replaced by a similar one.',
    ids: ['519-create-gemma3', '1153-dbg-role-robot'],
  },
  {
    reason: 'Digests may have a dash and upper-case letters.',
    ids: ['478-blob-head-upper', '479-blob-post-dash'],
  },
  {
    reason: 'Invalid names are rejected before the first step.',
    ids: ['447-badname-push'],
  },
  {
    reason: "An invalid model name is not found, as in OpenAI's API.",
    ids: ['961-cc-badname'],
  },
  {
    reason: 'This server has no cloud models: it creates none, and treats their suffix as part of the name.',
    ids: [
      ...['559-create-remote', '571-v1-model-cloud', '601-show-foo-cloud', '602-show-rem'],
      ...['1137-use-foo-cloud', '1139-use-rem', '1140-use-rem-gen'],
    ],
  },
  {
    reason: 'Repetitive output is not cut off.',
    ids: ['771-gen-json', '772-gen-schema', '1110-fmt-json-gemma3-go', '1119-repeat-guard-gen-raw-nostream'],
  },
  {
    reason: "`input` is required, as in OpenAI's API.",
    ids: ['1024-rs-noinput'],
  },
  {
    reason: "Reasoning and its summary are returned where either is requested, as in OpenAI's API.",
    ids: ['1020-rs-stream', '1023-rs-reason-stream'],
  },
  {
    reason: "A response that reaches its token limit is incomplete, as in OpenAI's API.",
    ids: ['1029-rs-length'],
  },
  {
    reason: 'Only the native routes have `_debug_render_only`.',
    ids: ['967-cc-parts2', '1305-v1-developer'],
  },
  {
    reason: 'Invalid values that would change the output are rejected, never ignored.',
    ids: [
      '546-create-params-badtype',
      '592-show-tinypb',
      '991-cc-stop-mixed',
      '992-cc-stop-num',
      '1043-ms-unknown-block',
      '1045-ms-role-bad',
    ],
  },
  {
    reason:
      "Completions and embeddings accept lists and token ids, and embeddings reject empty text, as in OpenAI's API.",
    ids: ['1004-cp-array', '1013-em-empty', '1014-em-tokens'],
  },
  {
    reason: "`usage` is `null` in all chunks but the last, as in OpenAI's API.",
    ids: ['1002-cp-stream-usage'],
  },
  {
    reason: "This server counts tokens, as in Anthropic's API.",
    ids: ['044-absent-v1-messages-count_tokens', '1057-ms-count'],
  },
  {
    reason:
      'Outside of `/api`, missing routes and wrong methods are reported as JSON, which clients of the other APIs parse.',
    ids: [
      ...['013-v1-model-ns', '014-v1-model-ns-esc'],
      ...['027-wrong-method-get-v1-completions', '028-wrong-method-get-v1-embeddings'],
    ],
  },
  {
    reason: 'A trailing slash is ignored, and `allow` lists the other methods.',
    ids: ['040-slash-get', '041-slash-post', '051-absent-v1-models-'],
  },
  {
    reason: 'Each `GET` route supports `HEAD`.',
    ids: ['011-v1-models-head'],
  },
  {
    reason: '`OPTIONS` lists the methods of a route.',
    ids: ['038-options-generate-no-origin'],
  },
  {
    reason: 'Text after the JSON of a body is an error; a byte order mark before it is not.',
    ids: ['205-trailing', '206-trailing-brace', '209-bom'],
  },
  {
    reason: 'A single prompt longer than the context is rejected instead of silently truncated.',
    ids: ['848-gen-long-raw'],
  },
]
