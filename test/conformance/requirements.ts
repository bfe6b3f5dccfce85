/** What clients of the public APIs rely on. One line each here, one check each in `openai.ts`. */

export interface Requirement {
  /** Where the API's own documents say it. */
  readonly source: string
  readonly behavior: string
}

const debugging = 'OpenAI API reference, Debugging requests'
const authentication = 'OpenAI API reference, Authentication'
const errors = 'OpenAI guides, Error codes'
const create = 'OpenAI API reference, Chat Completions, Create chat completion'
const object = 'OpenAI API reference, Chat Completions, The chat completion object'
const streaming = 'OpenAI API reference, Chat Completions, Streaming'
const chunk = 'OpenAI API reference, Chat Completions, The chat completion chunk object'
const models = 'OpenAI API reference, Models'

export const requirements = {
  'openai:auth:any-key-is-accepted': {
    source: authentication,
    behavior: 'Without authentication set up, any bearer key is accepted.',
  },
  'openai:auth:no-key-is-needed': {
    source: authentication,
    behavior: 'Without authentication set up, a call without a key is answered.',
  },
  'openai:transport:request-id': {
    source: debugging,
    behavior: 'Every response, also an error, has an `x-request-id` of its own.',
  },
  'openai:transport:client-headers-have-no-effect': {
    source: debugging,
    behavior: 'Headers about organization, project, beta and the client leave the answer as it is.',
  },
  'openai:transport:parsed-body': {
    source: create,
    behavior: "A body that the host's parser has already read is answered like one that it has not.",
  },
  'openai:transport:large-body': {
    source: create,
    behavior: 'A body of 3 MB, as inlined images make it, is read and judged by its content.',
  },
  'openai:transport:too-large-body': {
    source: errors,
    behavior: 'A body over the limit is a 413 in the error envelope.',
  },
  'openai:errors:body-is-not-json': {
    source: errors,
    behavior: 'A body that is not JSON is a 400 in the error envelope.',
  },
  'openai:errors:body-is-not-an-object': {
    source: errors,
    behavior: 'A JSON body that is no object is a 400.',
  },
  'openai:errors:wrong-method': {
    source: errors,
    behavior: 'A known path with another method is a 405 in the error envelope and says what is allowed.',
  },
  'openai:errors:unknown-path': {
    source: errors,
    behavior: 'An unknown path is a 404 in the error envelope, and its message names the path.',
  },
  'openai:errors:engine-failure': {
    source: errors,
    behavior: 'A failure inside is a 500 of type `server_error` that shows neither stack nor path.',
  },
  'openai:errors:overloaded': {
    source: errors,
    behavior: 'A server with too much to do is a 503 with `retry-after` in whole seconds.',
  },
  'openai:chat:unknown-field': {
    source: create,
    behavior: 'An unknown field is ignored.',
  },
  'openai:chat:null-means-absent': {
    source: create,
    behavior: 'Every optional field may be null, which means the same as absent.',
  },
  'openai:chat:unknown-model': {
    source: create,
    behavior: 'An unknown model is a 404 with the code `model_not_found`, whole and streamed.',
  },
  'openai:chat:missing-model': {
    source: create,
    behavior: 'A request without `model` is a 400 that names it.',
  },
  'openai:chat:missing-messages': {
    source: create,
    behavior: 'A request without `messages` is a 400 that names it.',
  },
  'openai:chat:whole-shape': {
    source: object,
    behavior: 'A whole answer has every field of the chat completion object.',
  },
  'openai:chat:unicode': {
    source: object,
    behavior: 'Emoji and Chinese arrive at the model and at the client as they were written.',
  },
  'openai:chat:max-tokens': {
    source: create,
    behavior: '`max_tokens` ends the answer with `length` after exactly so many tokens.',
  },
  'openai:chat:max-completion-tokens-wins': {
    source: create,
    behavior: '`max_completion_tokens` wins over `max_tokens`.',
  },
  'openai:chat:max-tokens-zero': {
    source: create,
    behavior: '`max_tokens` of 0 is a 400.',
  },
  'openai:chat:max-tokens-minus-one': {
    source: create,
    behavior: '`max_tokens` of -1 means no limit.',
  },
  'openai:chat:temperature-range': {
    source: create,
    behavior: 'A temperature above 2 or below 0 is a 400 that says which side.',
  },
  'openai:chat:top-p-range': {
    source: create,
    behavior: '`top_p` above 1 is a 400 that says so.',
  },
  'openai:chat:empty-messages': {
    source: create,
    behavior: 'An empty list of messages is a 400.',
  },
  'openai:chat:message-without-role': {
    source: create,
    behavior: "A message without a role is a 400 that names the message's place.",
  },
  'openai:chat:message-with-unknown-role': {
    source: create,
    behavior: "A message of an unknown role is a 400 that names the message's place.",
  },
  'openai:chat:text-parts': {
    source: create,
    behavior: 'Content as parts of text is the same prompt as the text in one piece.',
  },
  'openai:chat:developer-is-system': {
    source: create,
    behavior: 'A developer message is a system message.',
  },
  'openai:chat:image-on-text-model': {
    source: create,
    behavior: 'An image for a model of text is a 400 that names the part.',
  },
  'openai:chat:context-length': {
    source: errors,
    behavior:
      'A prompt longer than the context is a 400 with `context_length_exceeded`, whole and streamed, in the words that clients look for.',
  },
  'openai:chat:account-fields': {
    source: create,
    behavior: "Fields for OpenAI's own service, such as `service_tier` and `store`, are accepted.",
  },
  'openai:chat:audio-output': {
    source: create,
    behavior: 'Asking for audio is a 400.',
  },
  'openai:chat:tool-choice-none-without-tools': {
    source: create,
    behavior: '`tool_choice` none or auto without tools is an answer of text, without `tool_calls`.',
  },
  'openai:chat:functions-are-refused': {
    source: create,
    behavior: 'The deprecated `functions` are a 400 that names them, never silently ignored.',
  },
  'openai:chat:n-range': {
    source: create,
    behavior: '`n` of 0 or above 128 is a 400 that says which side.',
  },
  'openai:chat:several-choices-are-refused': {
    source: create,
    behavior: '`n` above 1 is a 400 that names it, never silently ignored.',
  },
  'openai:chat:stop-forms': {
    source: create,
    behavior: '`stop` is one text, a list of four, or null; empty texts in it mean nothing.',
  },
  'openai:chat:logit-bias': {
    source: create,
    behavior: '`logit_bias` reaches the model by token id, and another key is a 400 that names it.',
  },
  'openai:chat:top-logprobs-range': {
    source: create,
    behavior: '`top_logprobs` without `logprobs`, or above 20, is a 400.',
  },
  'openai:chat:tool-messages-are-refused': {
    source: create,
    behavior:
      'A result that answers no call, and a call that no result answers, are a 400 that names the message.',
  },
  'openai:chat:max-tokens-beyond-the-context': {
    source: create,
    behavior: 'A `max_tokens` that no context holds is no error.',
  },
  'openai:chat:response-format-unknown': {
    source: create,
    behavior: 'An unknown type of response format is a 400 that names it.',
  },
  'openai:chat:response-formats-are-refused': {
    source: create,
    behavior:
      'JSON as the response format, well-defined or not, is a 400 that names it, never silently ignored.',
  },
  'openai:chat:tool-choice-that-demands-a-tool': {
    source: create,
    behavior: 'A `tool_choice` that demands a tool that is not there is a 400.',
  },
  'openai:chat:tools-are-refused': {
    source: create,
    behavior: '`tools` are a 400 that names them, never silently ignored.',
  },
  'openai:chat:client-leaves': {
    source: create,
    behavior: 'A client that leaves before the answer ends the work on it.',
  },
  'openai:chat:stream-ends-with-done': {
    source: streaming,
    behavior: 'The last frame of a stream is `data: [DONE]`, and then the response ends.',
  },
  'openai:chat:stream-is-live': {
    source: streaming,
    behavior: 'The first frames arrive while the answer is still being made.',
  },
  'openai:chat:stream-starts-with-role': {
    source: chunk,
    behavior: 'The first chunk says the role, and no other does.',
  },
  'openai:chat:stream-joins-to-whole': {
    source: streaming,
    behavior: 'The contents of a stream are never empty and join to the whole answer.',
  },
  'openai:chat:stream-finish-reason': {
    source: chunk,
    behavior: 'The last chunk has an empty delta and the finish reason, which is null before.',
  },
  'openai:chat:stream-usage': {
    source: streaming,
    behavior: 'With `include_usage` one last chunk without choices has the usage, which is null before.',
  },
  'openai:chat:stream-without-usage': {
    source: streaming,
    behavior: 'Without `include_usage` no chunk has a usage.',
  },
  'openai:chat:stream-identity': {
    source: chunk,
    behavior: 'Id, time and model are the same in every chunk of a stream.',
  },
  'openai:chat:stream-error': {
    source: errors,
    behavior:
      'A failure after the stream has begun is one last frame with the error, and the server lives on.',
  },
  'openai:chat:stream-of-invalid-request': {
    source: streaming,
    behavior: 'An invalid request for a stream is a 400 of JSON, not a stream.',
  },
  'openai:chat:stream-client-leaves': {
    source: streaming,
    behavior: 'A client that leaves a stream ends the work on it, and the next call is answered.',
  },
  'openai:chat:stream-many-at-once': {
    source: streaming,
    behavior: 'Of fifty streams at once each has its own answer.',
  },
  'openai:models:list': {
    source: models,
    behavior: 'The list has every model in the shape of the model object.',
  },
  'openai:models:retrieve': {
    source: models,
    behavior: 'One model is found by its id, percent-encoded or not.',
  },
  'openai:models:retrieve-unknown': {
    source: models,
    behavior: 'An unknown id, with its slash encoded or not, is a 404 with the code `model_not_found`.',
  },
} as const satisfies Record<string, Requirement>

export type RequirementId = keyof typeof requirements
