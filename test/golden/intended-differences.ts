/** Where our answer is another one than the recorded, and why. */

export interface IntendedDifference {
  readonly reason: string
  /** It asks for what is not there yet, and is refused by name; not counted with the routes as they are built. */
  readonly notBuilt?: true
  readonly ids: readonly string[]
}

export const intendedDifferences: readonly IntendedDifference[] = [
  {
    reason: '`tools`, and messages with tool calls or results, are not supported yet.',
    notBuilt: true,
    ids: [
      '973-cc-tools-stream',
      '974-cc-tools-go-stream',
      '975-cc-tools-required',
      '976-cc-tools-nosupport',
      '977-cc-tool-history',
      '1047-ms-tools',
      '1049-ms-tool-result',
      '1056-ms-websearch',
    ],
  },
  {
    reason: '`format` and `response_format` are not supported yet.',
    notBuilt: true,
    ids: ['980-cc-schema'],
  },
  {
    reason: '`logprobs` and `top_logprobs` are not supported yet.',
    notBuilt: true,
    ids: ['988-cc-logprobs'],
  },
  {
    reason: 'A `template` in the request is not supported yet.',
    notBuilt: true,
    ids: ['721-gen-template', '722-gen-template-bad', '727-gen-debug-template'],
  },
  {
    reason: "Images are not supported yet, which is the client's error and not the server's.",
    notBuilt: true,
    ids: ['742-chat-image-stream'],
  },
  {
    reason: 'Thinking is not supported yet on the routes under `/v1`.',
    notBuilt: true,
    ids: [
      '951-cc',
      '953-cc-stream-usage',
      '955-cc-length-stream',
      '985-cc-reasoning-stream',
      '987-cc-reasoning-nothinkmodel',
      '995-cc-options',
      '1032-ms-length',
      '1051-ms-think',
      '1052-ms-think-stream',
    ],
  },
  {
    reason:
      'A model is a GGUF file: what a Modelfile would add to it (`SYSTEM`, `PARAMETER`, `MESSAGE`, `LICENSE`, `TEMPLATE`) is not supported yet.',
    notBuilt: true,
    ids: [
      '581-show-tinyset',
      '582-show-tinyset2',
      '586-show-tinylegacy',
      '591-show-tinyreq2',
      '592-show-tinypb',
      '603-show-msgbad',
      '1206-show-tinylegacy',
      '1210-chat-tools-unsupported',
      '1211-gen-think-unsupported',
      '1220-suffix',
    ],
  },
  {
    reason: 'A model is a file in a flat folder, so its name has no namespace and no host.',
    notBuilt: true,
    ids: [
      '598-show-user-thing-v1',
      '599-show-example-com-a-b-c',
      '1133-name-user-thing-v1',
      '1134-name-USER-Thing-V1',
      '1135-name-example-com-a-b-c',
      '1136-name-registry-ollama-ai-user-thing-v1',
    ],
  },
  {
    reason: 'An adapter alone is no model.',
    ids: ['1143-use-lora3'],
  },
  {
    reason: "A name that no model can have is a model that is not found, as in OpenAI's API.",
    ids: ['961-cc-badname'],
  },
  {
    reason:
      'There is no cloud behind this server, and no model that stands for one in it: such a model is not found.',
    ids: ['571-v1-model-cloud', '602-show-rem', '1139-use-rem', '1140-use-rem-gen'],
  },
  {
    reason: "What no model could be run with is the client's error (400), not the server's (500).",
    ids: [
      '719-gen-context-neg',
      '757-gen-opt-temp',
      '759-gen-opt-stop',
      '760-gen-opt-stop2',
      '761-gen-opt-mmap',
      '762-gen-opt-ctx',
      '763-gen-opt-topk-bool',
      '764-gen-opt-main_gpu',
      '774-gen-format-num',
      '776-gen-format-true',
      '777-gen-format-xml',
      '831-chat-tools-noname',
      '833-chat-format-num',
      '886-embed-badopt',
    ],
  },
  {
    reason: 'An answer that repeats itself is not cut off.',
    ids: ['771-gen-json', '772-gen-schema', '1110-fmt-json-gemma3-go', '1119-repeat-guard-gen-raw-nostream'],
  },
  {
    reason: "That a model makes no vectors is the client's error (400), not the server's (500, 501).",
    ids: ['887-embed-chat-model', '888-embeddings-chat-model'],
  },
  {
    reason: 'A context that is too small for anything is as small as can be.',
    ids: ['884-embed-numctx1', '885-embed-numctx0'],
  },
  {
    reason: 'What a tool takes is read when its model is there; these ask one that is not.',
    ids: ['234-type-chat-tools-23', '235-type-chat-tools-24'],
  },
  {
    reason: 'What the model said about itself is told to every client alike.',
    ids: ['611-show-copilot'],
  },
  {
    reason: 'Only the native routes have `_debug_render_only`.',
    ids: ['967-cc-parts2', '1305-v1-developer'],
  },
  {
    reason: 'What would change the answer is refused when it cannot be understood, and never skipped.',
    ids: ['991-cc-stop-mixed', '992-cc-stop-num', '1043-ms-unknown-block', '1045-ms-role-bad'],
  },
  {
    reason: "Anthropic's API counts tokens, and so does this server.",
    ids: ['044-absent-v1-messages-count_tokens', '1057-ms-count'],
  },
  {
    reason: 'Under `/v1`, where there is no route is told in JSON, which the clients of these APIs read.',
    ids: ['013-v1-model-ns', '014-v1-model-ns-esc'],
  },
  {
    reason: 'A slash at the end does not make another path, and its other methods are told.',
    ids: ['051-absent-v1-models-'],
  },
  {
    reason: '`HEAD` is answered wherever `GET` is.',
    ids: ['011-v1-models-head'],
  },
  {
    reason: 'A browser may ask what it may send (`OPTIONS`) from any page.',
    ids: ['038-options-generate-no-origin'],
  },
  {
    reason: 'A page or a name that may not call is told so in the body.',
    ids: ['054-cors-denied', '062-host-evil'],
  },
  {
    reason: 'An address in numbers as the host of a call is harmless: no page can have its name point there.',
    ids: ['073-host-public-ip'],
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
