/** Where our answer is another one than the recorded, and why. */

export interface IntendedDifference {
  readonly reason: string
  /** What a client has done wrong: the recorded server says 5xx, and ours a 4xx with the same shape of body. */
  readonly clientError?: true
  /** It asks for what is not there yet. */
  readonly notBuilt?: true
  readonly ids: readonly string[]
}

export const intendedDifferences: readonly IntendedDifference[] = [
  {
    reason: "What a client has done wrong is the client's error (4xx), not the server's (5xx).",
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
    reason: 'The engine does not quantize: a file has to be so when it is uploaded.',
    notBuilt: true,
    ids: [
      ...['533-create-quant-q8', '534-create-quant-bad', '535-create-quant-q4_0', '536-create-quant-q8src'],
      ...['537-create-quant-q4km', '538-create-quant-from', '593-show-tinyq', '595-show-tinyq5'],
    ],
  },
  {
    reason: "Beside calls, content that is not there is `null`, as in OpenAI's API.",
    ids: ['975-cc-tools-required', '976-cc-tools-nosupport'],
  },
  {
    reason:
      "In Anthropic's API only who asks for thoughts gets any, and with as much room for them as it says.",
    ids: ['1032-ms-length', '1051-ms-think', '1052-ms-think-stream'],
  },
  {
    reason: 'This server searches no web.',
    ids: ['1056-ms-websearch'],
  },
  {
    reason: 'A template in a Modelfile is what the author of the model wants, and always wins.',
    ids: ['745-gen-suffix-fim-debug', '746-gen-think-no', '826-chat-tools-unsupported'],
  },
  {
    reason: 'A template in the weights is used as it is; none that is like it takes its place.',
    ids: ['519-create-gemma3', '1153-dbg-role-robot'],
  },
  {
    reason: 'A digest means the same with a dash and in capitals.',
    ids: ['478-blob-head-upper', '479-blob-post-dash'],
  },
  {
    reason: 'What is no name is refused before anything begins.',
    ids: ['447-badname-push'],
  },
  {
    reason: "A name that no model can have is a model that is not found, as in OpenAI's API.",
    ids: ['961-cc-badname'],
  },
  {
    reason:
      'There is no cloud behind this server: no model that stands for one is made here, and a name that ends like theirs is a name.',
    ids: [
      ...['559-create-remote', '571-v1-model-cloud', '601-show-foo-cloud', '602-show-rem'],
      ...['1137-use-foo-cloud', '1139-use-rem', '1140-use-rem-gen'],
    ],
  },
  {
    reason: 'An answer that repeats itself is not cut off.',
    ids: ['771-gen-json', '772-gen-schema', '1110-fmt-json-gemma3-go', '1119-repeat-guard-gen-raw-nostream'],
  },
  {
    reason: "Without an `input` there is nothing to answer, as in OpenAI's API.",
    ids: ['1024-rs-noinput'],
  },
  {
    reason: "Thoughts are there and summed up where either is asked for, as in OpenAI's API.",
    ids: ['1020-rs-stream', '1023-rs-reason-stream'],
  },
  {
    reason: "An answer that the limit cuts is not completed, as in OpenAI's API.",
    ids: ['1029-rs-length'],
  },
  {
    reason: 'Only the native routes have `_debug_render_only`.',
    ids: ['967-cc-parts2', '1305-v1-developer'],
  },
  {
    reason: 'What would change the answer is refused when it cannot be understood, and never skipped.',
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
      "Completions and embeddings take lists and token ids, and embeddings no empty text, as OpenAI's API does.",
    ids: ['1004-cp-array', '1013-em-empty', '1014-em-tokens'],
  },
  {
    reason: "Until the last chunk, which has it, the usage is `null`, as in OpenAI's API.",
    ids: ['1002-cp-stream-usage'],
  },
  {
    reason: "Anthropic's API counts tokens, and so does this server.",
    ids: ['044-absent-v1-messages-count_tokens', '1057-ms-count'],
  },
  {
    reason:
      'Beside `/api`, where there is no route or another method is told in JSON, which the clients of the other APIs read.',
    ids: [
      ...['013-v1-model-ns', '014-v1-model-ns-esc'],
      ...['027-wrong-method-get-v1-completions', '028-wrong-method-get-v1-embeddings'],
    ],
  },
  {
    reason: 'A slash at the end does not make another path, and its other methods are told.',
    ids: ['040-slash-get', '041-slash-post', '051-absent-v1-models-'],
  },
  {
    reason: '`HEAD` is answered wherever `GET` is.',
    ids: ['011-v1-models-head'],
  },
  {
    reason: 'Whoever asks what may be sent (`OPTIONS`) is told.',
    ids: ['038-options-generate-no-origin'],
  },
  {
    reason: 'Text behind the JSON of a body is a mistake, and a byte order mark in front of it is none.',
    ids: ['205-trailing', '206-trailing-brace', '209-bom'],
  },
  {
    reason:
      'A single prompt that is longer than the context is refused; its beginning is not cut off in silence.',
    ids: ['848-gen-long-raw'],
  },
]
