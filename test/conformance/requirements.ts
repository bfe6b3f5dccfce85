/** Requirements of the public APIs' clients. Each has one check in the file of its API: `openai.ts`, `anthropic.ts`, `ollama.ts`. */

export interface Requirement {
  /** Section of the API's documentation. */
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
const functions = 'OpenAI guides, Function calling'
const structured = 'OpenAI guides, Structured outputs'
const text = 'OpenAI API reference, Completions, Create completion'
const response = 'OpenAI API reference, Responses, Create a model response'
const responseObject = 'OpenAI API reference, Responses, The response object'
const responseStream = 'OpenAI API reference, Responses, Streaming events'
const vectors = 'OpenAI API reference, Embeddings, Create embeddings'
const models = 'OpenAI API reference, Models'
const deepSeek = 'DeepSeek API docs, Reasoning model'
const rateLimits = 'OpenAI guides, Rate limits'

const anthropicOverview = 'Anthropic API reference, Overview'
const anthropicVersions = 'Anthropic API reference, Versions'
const anthropicBetas = 'Anthropic API reference, Beta headers'
const anthropicErrors = 'Anthropic API reference, Errors'
const anthropicRateLimits = 'Anthropic API reference, Rate limits'
const anthropicCreate = 'Anthropic API reference, Messages, Create a Message'
const anthropicTurns = 'Anthropic guides, Using the Messages API'
const anthropicStops = 'Anthropic guides, Handling stop reasons'
const anthropicStreaming = 'Anthropic guides, Streaming messages'
const anthropicTools = 'Anthropic guides, Tool use, How to implement tool use'
const anthropicToolChoice = 'Anthropic guides, Tool use, Forcing tool use'
const anthropicThinking = 'Anthropic guides, Extended thinking'
const anthropicFormats = 'Anthropic guides, Structured outputs'
const anthropicCaching = 'Anthropic guides, Prompt caching'
const anthropicCount = 'Anthropic API reference, Messages, Count tokens in a Message'
const anthropicModels = 'Anthropic API reference, Models'
const claudeCode = 'Claude Code docs, LLM gateway configuration'

const ollamaGenerate = 'Ollama API reference, Generate a response'
const ollamaChat = 'Ollama API reference, Generate a chat message'
const ollamaStreaming = 'Ollama API reference, Streaming'
const ollamaUsage = 'Ollama API reference, Usage'
const ollamaErrors = 'Ollama API reference, Errors'
const ollamaAuthentication = 'Ollama API reference, Authentication'
const ollamaTags = 'Ollama API reference, List models'
const ollamaRunning = 'Ollama API reference, List running models'
const ollamaShow = 'Ollama API reference, Show model details'
const ollamaVersion = 'Ollama API reference, Get version'
const ollamaEmbed = 'Ollama API reference, Generate embeddings'
const ollamaTools = 'Ollama docs, Tool calling'
const ollamaStructured = 'Ollama docs, Structured outputs'
const ollamaThinking = 'Ollama docs, Thinking'
const ollamaOptions = 'Ollama docs, Modelfile reference, Valid parameters and values'
const ollamaFaq = 'Ollama docs, FAQ'
const ollamaRoutes = 'ollama/ollama: server/routes.go'
const ollamaTypes = 'ollama/ollama: api/types.go'
const ollamaNames = 'ollama/ollama: types/model/name.go'
const ollamaJs = 'ollama/ollama-js: src/utils.ts'

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
    behavior: 'Every response, also an error, has a unique `x-request-id`.',
  },
  'openai:transport:client-headers-have-no-effect': {
    source: debugging,
    behavior: 'Headers about organization, project, beta and the client leave the answer as it is.',
  },
  'openai:transport:parsed-body': {
    source: create,
    behavior: "A body that the host's parser has read gets the same response as an unread one.",
  },
  'openai:transport:large-body': {
    source: create,
    behavior: 'A body of 3 MB, as with inlined images, is accepted.',
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
    behavior: 'A known path with another method is a 405 in the error envelope with the allowed methods.',
  },
  'openai:errors:unknown-path': {
    source: errors,
    behavior: 'An unknown path is a 404 in the error envelope, and its message names the path.',
  },
  'openai:errors:engine-failure': {
    source: errors,
    behavior: 'An internal failure is a 500 of type `server_error` without stack or path.',
  },
  'openai:errors:overloaded': {
    source: errors,
    behavior: 'An overloaded server responds with 503 and `retry-after` in whole seconds.',
  },
  'openai:limits:on-every-answer': {
    source: rateLimits,
    behavior: 'Every model response, also a stream, has `x-ratelimit-*` headers with durations.',
  },
  'openai:limits:to-nobody-else': {
    source: rateLimits,
    behavior: 'A caller without limits gets no limit headers.',
  },
  'openai:limits:refused': {
    source: rateLimits,
    behavior:
      'A request over a limit is a 429. `retry-after` and `retry-after-ms` are the time until the limit has room.',
  },
  'openai:limits:too-many-at-once': {
    source: rateLimits,
    behavior: 'A request over the limit of concurrent requests is a 429 with `retry-after` of one second.',
  },
  'openai:limits:spent': {
    source: errors,
    behavior:
      'A key at its spending limit gets a 429 `insufficient_quota` that forbids retries; it can still list models.',
  },
  'openai:limits:queue-is-full': {
    source: errors,
    behavior: 'A request to a full queue is a 503 with `retry-after`, complete and streamed.',
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
    behavior: 'A temperature above 2 or below 0 is a 400 that names the bound.',
  },
  'openai:chat:top-p-range': {
    source: create,
    behavior: '`top_p` above 1 is a 400 that names the bound.',
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
    behavior: '`n` of 0 or above 128 is a 400 that names the bound.',
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
  'openai:chat:max-tokens-beyond-the-context': {
    source: create,
    behavior: 'A `max_tokens` that no context holds is no error.',
  },
  'openai:chat:response-format-unknown': {
    source: create,
    behavior: 'An unknown type of response format is a 400 that names it.',
  },
  'openai:chat:client-leaves': {
    source: create,
    behavior: 'A client that disconnects before the response ends the generation.',
  },
  'openai:chat:stream-ends-with-done': {
    source: streaming,
    behavior: 'The last frame of a stream is `data: [DONE]`, and then the response ends.',
  },
  'openai:chat:stream-is-live': {
    source: streaming,
    behavior: 'The first frames arrive while the answer is being generated.',
  },
  'openai:chat:stream-starts-with-role': {
    source: chunk,
    behavior: 'Only the first chunk has the role.',
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
    behavior: 'A client that disconnects mid-stream ends the generation, and the next request succeeds.',
  },
  'openai:chat:stream-many-at-once': {
    source: streaming,
    behavior: 'Fifty concurrent streams each have their own answer.',
  },
  'openai:chat:tools': {
    source: functions,
    behavior:
      'Functions reach the model; its calls come back with an id, a name and JSON text, and no content.',
  },
  'openai:chat:stream-tools': {
    source: functions,
    behavior: 'A streamed call has its index, id and name once, and then its arguments in pieces.',
  },
  'openai:chat:text-beside-calls': {
    source: functions,
    behavior: 'Text in front of a call stays the content.',
  },
  'openai:chat:call-cut-off': {
    source: functions,
    behavior:
      'A call that the token limit cuts is no call of a whole answer; the answer finishes with length.',
  },
  'openai:chat:call-broken-off': {
    source: functions,
    behavior: 'A call that the model itself breaks off is none; a stream that began it finishes with length.',
  },
  'openai:chat:tool-choice': {
    source: functions,
    behavior: '`tool_choice` is none, auto, required, a function by name, or some of them.',
  },
  'openai:chat:tool-choice-that-demands-a-tool': {
    source: create,
    behavior: 'A `tool_choice` that demands a tool that is not there is a 400.',
  },
  'openai:chat:parallel-tool-calls': {
    source: functions,
    behavior: '`parallel_tool_calls: false` is at most one call.',
  },
  'openai:chat:function-fields': {
    source: functions,
    behavior: 'A function has a description, may be strict, and without `parameters` it takes none.',
  },
  'openai:chat:custom-tools': {
    source: create,
    behavior: 'A custom tool is a 400 that names it, never silently ignored.',
  },
  'openai:chat:tool-messages': {
    source: functions,
    behavior: 'Calls and their results reach the model in order, whichever result comes first.',
  },
  'openai:chat:tool-messages-that-do-not-fit': {
    source: create,
    behavior:
      'A result that answers no call, and a call that no result answers, are a 400 that names the message.',
  },
  'openai:chat:response-formats': {
    source: structured,
    behavior: '`response_format` constrains the output to a JSON object or a schema, strict or not.',
  },
  'openai:chat:response-format-beside-tools': {
    source: structured,
    behavior: 'With tools it constrains text instead of calls, and is ignored if a call is forced.',
  },
  'openai:chat:engine-errors': {
    source: structured,
    behavior: 'An unsupported schema is a 400 that names the keyword, complete and streamed.',
  },
  'openai:chat:response-format-incomplete': {
    source: structured,
    behavior: 'A schema without a name, or with one of other characters, is a 400 that names the field.',
  },
  'openai:chat:grammar': {
    source: 'llama.cpp: tools/server/README.md',
    behavior: "A `grammar` in llama.cpp's GBNF constrains the output; together with a format it is a 400.",
  },
  'openai:chat:logprobs': {
    source: object,
    behavior: 'Each token has its bytes, its logprob and the likeliest alternatives.',
  },
  'openai:chat:logprobs-without-alternatives': {
    source: object,
    behavior:
      'Without `top_logprobs` the alternatives are empty; an impossible token has a logprob of -9999.',
  },
  'openai:chat:stream-logprobs': {
    source: chunk,
    behavior: 'The logprobs of a chunk are those of its tokens.',
  },
  'openai:chat:reasoning': {
    source: deepSeek,
    behavior:
      'Reasoning is `reasoning_content` and `reasoning`, never content, and its tokens are counted apart.',
  },
  'openai:chat:reasoning-effort': {
    source: create,
    behavior:
      '`reasoning_effort` none disables reasoning, another enables it and reaches the template; without it the template decides.',
  },
  'openai:chat:template-variables': {
    source: 'llama.cpp: tools/server/README.md',
    behavior: "`chat_template_kwargs` are variables of the model's template, `enable_thinking` among them.",
  },
  'openai:chat:refusals-handed-back': {
    source: create,
    behavior: 'A refusal of a hosted model is accepted as its text.',
  },
  'openai:chat:reasoning-handed-back': {
    source: deepSeek,
    behavior: "Reasoning of earlier turns reaches the model's template.",
  },
  'openai:completions:whole-shape': {
    source: text,
    behavior: 'A whole answer is a `text_completion` with the text, the usage and a time in seconds.',
  },
  'openai:completions:bare-prompt': {
    source: text,
    behavior: 'The prompt is continued as it is, without a template.',
  },
  'openai:completions:max-tokens': {
    source: text,
    behavior:
      'Without `max_tokens` an answer has at most 16 tokens; -1 is no limit, and 0 a 400 without `echo`.',
  },
  'openai:completions:prompt-forms': {
    source: text,
    behavior: 'A prompt is text, token ids, or a list of these.',
  },
  'openai:completions:several-prompts': {
    source: text,
    behavior: 'Each prompt has its own choice, in order, complete and streamed; the usage counts all.',
  },
  'openai:completions:side-by-side': {
    source: text,
    behavior:
      'Complete answers to several prompts are generated concurrently and returned in order; a failure cancels all.',
  },
  'openai:completions:stream': {
    source: text,
    behavior: 'A stream has pieces of text, a last one with the reason, the usage if asked, and `[DONE]`.',
  },
  'openai:completions:echo': {
    source: text,
    behavior: 'With `echo` the text begins with the prompt, also with one of token ids.',
  },
  'openai:completions:echo-logprobs': {
    source: text,
    behavior:
      'With `echo` the `logprobs` begin with the tokens of the prompt, the first with null; a `max_tokens` of 0 leaves it at that.',
  },
  'openai:completions:suffix': {
    source: text,
    behavior: 'With a `suffix` the model fills the gap in front of it.',
  },
  'openai:completions:logprobs': {
    source: text,
    behavior:
      '`logprobs` are parallel lists, with offsets into the text and the drawn token among the others.',
  },
  'openai:completions:errors': {
    source: errors,
    behavior: 'What fails first has a status, and what fails in a stream is its last event.',
  },
  'openai:completions:bad-input': {
    source: text,
    behavior: 'A wrong field is a 400 that names it, and nothing reaches the model.',
  },
  'openai:responses:whole-shape': {
    source: responseObject,
    behavior: 'A whole response has all the fields of the reference, and a message with the text.',
  },
  'openai:responses:said-again': {
    source: responseObject,
    behavior: 'It repeats the fields of the request, except `store`, which is false.',
  },
  'openai:responses:null-means-absent': {
    source: response,
    behavior: 'A field that is null is absent, and an unknown one is ignored.',
  },
  'openai:responses:input-forms': {
    source: response,
    behavior:
      'The input is a text or items; a message needs no `type`, and its content is text or parts of it.',
  },
  'openai:responses:instructions': {
    source: response,
    behavior: '`instructions` are the system’s, in front of all the input.',
  },
  'openai:responses:turns': {
    source: response,
    behavior: 'Consecutive reasoning, messages and calls are one turn of the model; results of calls follow.',
  },
  'openai:responses:results-that-do-not-fit': {
    source: response,
    behavior: 'A result without its call, and a call without a result, is a 400 that names the item.',
  },
  'openai:responses:limit': {
    source: responseObject,
    behavior: 'An answer that the limit cuts is `incomplete`, with status 200, and so is its last item.',
  },
  'openai:responses:sampling': {
    source: response,
    behavior: 'Sampling fields, the limit and `truncation` reach the engine.',
  },
  'openai:responses:text-formats': {
    source: structured,
    behavior: '`text.format` holds the answer to JSON or to a schema, which is flat there.',
  },
  'openai:responses:engine-errors': {
    source: errors,
    behavior: "The engine's schema errors name the field of this API.",
  },
  'openai:responses:tools': {
    source: functions,
    behavior: 'Calls are items with an item id and a `call_id`; functions have no envelope.',
  },
  'openai:responses:tool-choice': {
    source: functions,
    behavior: '`tool_choice` forbids, allows or demands calls; of a tool that is no function it is a 400.',
  },
  'openai:responses:hosted-tools': {
    source: response,
    behavior: 'Tools that OpenAI hosts are skipped; a custom tool or an unknown type is a 400.',
  },
  'openai:responses:call-broken-off': {
    source: responseObject,
    behavior: 'A call that is broken off is `incomplete`, and so is the response.',
  },
  'openai:responses:reasoning': {
    source: responseObject,
    behavior: 'Reasoning is the first item, with a summary and `encrypted_content` on request.',
  },
  'openai:responses:reasoning-effort': {
    source: response,
    behavior: '`reasoning.effort` none disables reasoning, another enables it and reaches the template.',
  },
  'openai:responses:reasoning-handed-back': {
    source: response,
    behavior:
      'Reasoning that is sent back, as content, encoded or as a summary, reaches the template; encrypted content of other servers does not.',
  },
  'openai:responses:nothing-said': {
    source: responseObject,
    behavior: 'An answer without a text has an empty message.',
  },
  'openai:responses:logprobs': {
    source: responseObject,
    behavior: 'Each token of a text has its logprob if `include` or `top_logprobs` asks for it.',
  },
  'openai:responses:stream': {
    source: responseStream,
    behavior: 'A stream has named and numbered events, and leads to the whole response.',
  },
  'openai:responses:stream-items': {
    source: responseStream,
    behavior: 'Each item is done before the next is added, in order, whatever it is.',
  },
  'openai:responses:stream-fails': {
    source: responseStream,
    behavior: 'A failure in a stream is `response.failed`, with a code and a message.',
  },
  'openai:responses:errors-before-a-stream': {
    source: errors,
    behavior: 'What fails before the first token is an HTTP error, also of a stream.',
  },
  'openai:responses:client-leaves': {
    source: response,
    behavior: 'A client that disconnects ends the generation, complete and streamed.',
  },
  'openai:responses:none-is-kept': {
    source: response,
    behavior: 'A request that needs a stored response or item is a 4xx that explains that none is stored.',
  },
  'openai:responses:input-tokens': {
    source: response,
    behavior: '`input_tokens` counts the input of the same request without generating.',
  },
  'openai:responses:bad-input': {
    source: errors,
    behavior: 'What is wrong is a 400 that names the field, in plain words.',
  },
  'openai:transcriptions:no-model': {
    source: 'OpenAI API reference, Audio, Create transcription',
    behavior: 'Audio is a 400 in the error envelope: no model takes it.',
  },
  'openai:embeddings:shape': {
    source: vectors,
    behavior: 'There is a vector of length 1 for each text, in order, with the tokens of all.',
  },
  'openai:embeddings:input-forms': {
    source: vectors,
    behavior: 'The input is text, token ids, or a list of these.',
  },
  'openai:embeddings:base64': {
    source: vectors,
    behavior: 'In base64 a vector is its 32-bit floats, the lowest byte first.',
  },
  'openai:embeddings:dimensions': {
    source: vectors,
    behavior: '`dimensions` shortens the vectors to length 1 again; more than they have is a 400.',
  },
  'openai:embeddings:errors': {
    source: errors,
    behavior: 'An unknown model is a 404, one without vectors and a text that is too long are a 400.',
  },
  'openai:embeddings:bad-input': {
    source: vectors,
    behavior: 'A wrong field is a 400 that names it, and nothing reaches the model.',
  },
  'openai:embeddings:many': {
    source: vectors,
    behavior: 'There may be 2,048 inputs.',
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
  'anthropic:auth:any-key-is-accepted': {
    source: anthropicOverview,
    behavior: 'Without authentication set up, any key is accepted, as `x-api-key`, as a bearer, or both.',
  },
  'anthropic:auth:no-key-is-needed': {
    source: anthropicOverview,
    behavior: 'Without authentication set up, a call without a key is answered.',
  },
  'anthropic:transport:any-version': {
    source: anthropicVersions,
    behavior: 'Any `anthropic-version`, or none, gets the same answer.',
  },
  'anthropic:transport:any-beta': {
    source: anthropicBetas,
    behavior: 'Unknown betas, in the header or as `?beta=true`, leave the answer as it is.',
  },
  'anthropic:transport:request-id': {
    source: anthropicErrors,
    behavior: 'Every response has a unique `request-id`, which an error repeats in its body.',
  },
  'anthropic:transport:accept-has-no-say': {
    source: anthropicStreaming,
    behavior: 'Only `stream` determines whether the response is a stream, never `accept`.',
  },
  'anthropic:transport:browsers': {
    source: anthropicOverview,
    behavior: 'A CORS preflight allows the headers of the clients.',
  },
  'anthropic:errors:body-is-not-json': {
    source: anthropicErrors,
    behavior: 'A body that is not JSON is a 400 in the error envelope.',
  },
  'anthropic:errors:too-large-body': {
    source: anthropicErrors,
    behavior: 'A body over the limit is a 413 of the type `request_too_large`.',
  },
  'anthropic:errors:wrong-method': {
    source: anthropicErrors,
    behavior: 'A known path with another method is a 405 in the error envelope, with or without a version.',
  },
  'anthropic:errors:unknown-path': {
    source: anthropicErrors,
    behavior: 'An unknown path is a 404 in the envelope of the API that the client speaks.',
  },
  'anthropic:errors:engine-failure': {
    source: anthropicErrors,
    behavior: 'An internal failure is a 500 of the type `api_error` without stack or path.',
  },
  'anthropic:errors:overloaded': {
    source: anthropicErrors,
    behavior: 'An overloaded server responds with 529, `overloaded_error` and `retry-after`.',
  },
  'anthropic:limits:on-every-answer': {
    source: anthropicRateLimits,
    behavior:
      'Every model response, also a stream, has `anthropic-ratelimit-*` headers with the time of the reset.',
  },
  'anthropic:limits:to-nobody-else': {
    source: anthropicRateLimits,
    behavior: 'A caller without limits gets no limit headers.',
  },
  'anthropic:limits:refused': {
    source: anthropicRateLimits,
    behavior:
      'A request over a limit is a 429. `retry-after` and `retry-after-ms` are the time until the limit has room.',
  },
  'anthropic:limits:too-many-at-once': {
    source: anthropicRateLimits,
    behavior: 'A request over the limit of concurrent requests is a 429 with `retry-after` of one second.',
  },
  'anthropic:limits:counting-apart': {
    source: anthropicRateLimits,
    behavior: 'Counting tokens has its own limit of requests per minute, equal to that of messages.',
  },
  'anthropic:limits:spent': {
    source: anthropicRateLimits,
    behavior:
      'A key at its spending limit gets a 400 with the time of the reset; it can still count tokens and list models.',
  },
  'anthropic:limits:queue-is-full': {
    source: anthropicErrors,
    behavior: 'A request to a full queue is a 529 with `retry-after`, complete and streamed.',
  },
  'anthropic:messages:whole-shape': {
    source: anthropicCreate,
    behavior: 'A whole answer has every field of the message object.',
  },
  'anthropic:messages:missing-fields': {
    source: anthropicCreate,
    behavior: 'A request without `model`, `max_tokens` or `messages` is a 400: `model: Field required`.',
  },
  'anthropic:messages:unknown-model': {
    source: anthropicErrors,
    behavior: 'An unknown model is a 404 with the message `model: <id>`, whole and streamed.',
  },
  'anthropic:messages:empty-messages': {
    source: anthropicCreate,
    behavior: 'An empty list of messages is a 400.',
  },
  'anthropic:messages:text-blocks': {
    source: anthropicCreate,
    behavior: 'Content and system as blocks of text are the same prompt as text in one piece.',
  },
  'anthropic:messages:max-tokens': {
    source: anthropicStops,
    behavior: '`max_tokens` ends the answer with `max_tokens` after exactly so many tokens.',
  },
  'anthropic:messages:stop-sequence': {
    source: anthropicStops,
    behavior:
      'A stop sequence ends the answer with `stop_sequence` and names the sequence, complete and streamed.',
  },
  'anthropic:messages:context-is-full': {
    source: anthropicStops,
    behavior: 'An answer that fills the context ends with `model_context_window_exceeded`.',
  },
  'anthropic:messages:says-nothing': {
    source: anthropicStops,
    behavior: 'An empty answer is an empty list of blocks and `end_turn`.',
  },
  'anthropic:messages:sampling-ranges': {
    source: anthropicCreate,
    behavior: '`temperature` and `top_p` are from 0 to 1; other values are a 400 that names the bound.',
  },
  'anthropic:messages:turns-are-merged': {
    source: anthropicTurns,
    behavior: 'Turns of one role in a row are one turn, and the model reads all of it.',
  },
  'anthropic:messages:prefill': {
    source: anthropicTurns,
    behavior: 'A trailing assistant turn is continued; an empty one is none.',
  },
  'anthropic:messages:system-among-messages': {
    source: anthropicTurns,
    behavior: 'A message of the role `system` is taken at every place, and stays there.',
  },
  'anthropic:messages:unknown-role': {
    source: anthropicCreate,
    behavior: 'A message of an unknown role is a 400 that names its place.',
  },
  'anthropic:messages:unknown-block': {
    source: anthropicCreate,
    behavior: 'A block of an unknown type is a 400 that begins with `Input tag`.',
  },
  'anthropic:messages:image-on-text-model': {
    source: anthropicCreate,
    behavior: 'An image for a model of text is a 400 that names the block.',
  },
  'anthropic:messages:documents': {
    source: anthropicCreate,
    behavior:
      'Documents and search results of text are a part of the prompt; a document in a file is a 400 that names it.',
  },
  'anthropic:messages:ignored-fields': {
    source: claudeCode,
    behavior: 'Fields about accounts and context editing, and unknown ones, are accepted.',
  },
  'anthropic:messages:billing-block': {
    source: claudeCode,
    behavior: 'The billing block of `system` is not part of the prompt.',
  },
  'anthropic:messages:mcp-servers-are-refused': {
    source: anthropicCreate,
    behavior: 'MCP servers are a 400 that names them; an empty list is none.',
  },
  'anthropic:messages:threads-are-refused': {
    source: '@anthropic-ai/sdk 1.12, lib/internal/threads/ThreadState',
    behavior: 'A server-side thread is a 400 with the code after which clients send the whole conversation.',
  },
  'anthropic:messages:output-format': {
    source: anthropicFormats,
    behavior:
      'A JSON Schema, under its new name or its old one, reaches the model; an effort changes nothing.',
  },
  'anthropic:messages:engine-errors': {
    source: anthropicFormats,
    behavior:
      'An unsupported schema, of the output or of a tool, is a 400 that names it, complete and streamed.',
  },
  'anthropic:tools:whole': {
    source: anthropicTools,
    behavior: 'A call is a `tool_use` block with an id and an object, and stops with `tool_use`.',
  },
  'anthropic:tools:streamed': {
    source: anthropicStreaming,
    behavior: 'A streamed call is a block whose pieces of JSON join to the input of the whole answer.',
  },
  'anthropic:tools:no-arguments': {
    source: anthropicTools,
    behavior: 'A call without arguments has an empty object, whole and streamed.',
  },
  'anthropic:tools:long-arguments': {
    source: anthropicStreaming,
    behavior: 'Four kilobytes of quotes, line breaks and emoji in an argument arrive unchanged.',
  },
  'anthropic:tools:blocks-in-order': {
    source: anthropicStreaming,
    behavior: 'Reasoning, text and two calls are blocks numbered from 0, each closed before the next opens.',
  },
  'anthropic:tools:broken-off': {
    source: anthropicStops,
    behavior: 'A call that the limit cuts stops with `max_tokens`, and is omitted from a complete response.',
  },
  'anthropic:tools:round-trip': {
    source: anthropicTools,
    behavior: 'Calls and their results, errors among them, reach the model in order, results first.',
  },
  'anthropic:tools:result-contents': {
    source: anthropicTools,
    behavior: 'A result may have no content, an empty text, a text, or blocks, an image among them.',
  },
  'anthropic:tools:history-without-tools': {
    source: anthropicTools,
    behavior: 'A conversation with calls can continue without tools.',
  },
  'anthropic:tools:choice': {
    source: anthropicToolChoice,
    behavior: 'A choice of any tool, of one, or of none, and of one call at most, reaches the model.',
  },
  'anthropic:tools:choice-of-none-there': {
    source: anthropicToolChoice,
    behavior: 'A choice of a tool that is not there is a 400 that names it, and so is one without tools.',
  },
  'anthropic:tools:definitions': {
    source: anthropicTools,
    behavior:
      'A name twice, a name with a space, and a schema of no object are each a 400 that names the tool.',
  },
  'anthropic:tools:known-schemas': {
    source: anthropicTools,
    behavior: 'Tools that the API defines and the client runs reach the model with their schemas.',
  },
  'anthropic:tools:hosted-are-refused': {
    source: anthropicTools,
    behavior: 'Hosted and unknown tools are a 400 that names them.',
  },
  'anthropic:tools:pairs': {
    source: anthropicTools,
    behavior: 'A call without a result, or a result without a call, is a 400 that names its id.',
  },
  'anthropic:thinking:asked-for': {
    source: anthropicThinking,
    behavior:
      'Requested thinking is the first block, with a signature; in a stream the signature comes last.',
  },
  'anthropic:thinking:not-asked-for': {
    source: anthropicThinking,
    behavior: 'Thinking that was not requested, or is disabled, has no block but is counted.',
  },
  'anthropic:thinking:omitted': {
    source: anthropicThinking,
    behavior: 'Omitted thinking is an empty block with a signature.',
  },
  'anthropic:thinking:handed-back': {
    source: anthropicThinking,
    behavior: 'Thinking is accepted with any signature; redacted thinking is dropped.',
  },
  'anthropic:thinking:budget': {
    source: anthropicThinking,
    behavior: 'A budget that is not below `max_tokens` is a 400.',
  },
  'anthropic:cache:accounting': {
    source: anthropicCaching,
    behavior:
      'The first request writes the prefix up to a breakpoint, and the next reads it. Reads, writes and the rest add up to the counted prompt.',
  },
  'anthropic:cache:changes': {
    source: anthropicCaching,
    behavior: 'Another tool description invalidates everything; another question keeps tools and system.',
  },
  'anthropic:cache:other-choice': {
    source: anthropicCaching,
    behavior: 'Another `tool_choice` keeps tools and system.',
  },
  'anthropic:cache:tenants': {
    source: anthropicCaching,
    behavior: 'Tenants have separate caches; callers of one tenant share theirs.',
  },
  'anthropic:cache:not-asked-for': {
    source: anthropicCaching,
    behavior:
      'Without a breakpoint there are no cache reads or writes, whatever was reused: the whole prompt is `input_tokens`.',
  },
  'anthropic:cache:billing-block': {
    source: claudeCode,
    behavior: 'A billing block may change with each request: the prefix after it is read.',
  },
  'anthropic:cache:growing-conversation': {
    source: anthropicCaching,
    behavior: 'A conversation with its breakpoint on the last block reads more with each turn.',
  },
  'anthropic:cache:streams': {
    source: anthropicStreaming,
    behavior: '`message_start` and `message_delta` report the same cache usage as a complete response.',
  },
  'anthropic:cache:pre-warm': {
    source: anthropicCaching,
    behavior:
      '`max_tokens` of 0 only caches the prompt: no content, stop reason `max_tokens`, and cache writes that the next request reads.',
  },
  'anthropic:cache:pre-warm-refused': {
    source: anthropicCaching,
    behavior: '`max_tokens` of 0 with a stream, thinking, a format or a forced tool is a 400 that names it.',
  },
  'anthropic:cache:markers': {
    source: anthropicCaching,
    behavior:
      '`cache_control` is taken on tools, system and the blocks of messages, within results, too, for five minutes or an hour; null is none.',
  },
  'anthropic:cache:order': {
    source: anthropicCaching,
    behavior: 'A prefix is made of tools, then system, then messages, in whatever order the body has them.',
  },
  'anthropic:cache:at-most-four': {
    source: anthropicCaching,
    behavior: 'Five breakpoints, with that of the body, are a 400 that counts them; four are taken.',
  },
  'anthropic:cache:not-on-these': {
    source: anthropicCaching,
    behavior: 'A breakpoint on an empty text, on thinking or on redacted thinking is a 400 that names it.',
  },
  'anthropic:cache:types': {
    source: anthropicCaching,
    behavior: 'A `cache_control` with another type or `ttl` is a 400 that names it.',
  },
  'anthropic:cache:longer-first': {
    source: anthropicCaching,
    behavior: 'A breakpoint for an hour after one for five minutes, in the order of the prompt, is a 400.',
  },
  'anthropic:cache:mixed-lifetimes': {
    source: anthropicCaching,
    behavior:
      'Writes up to the last breakpoint for an hour, and from there to the last one, are counted apart.',
  },
  'anthropic:cache:automatic': {
    source: anthropicCaching,
    behavior:
      'The request-level breakpoint applies to the last block that can have one; without such a block nothing is cached.',
  },
  'anthropic:cache:automatic-beside-others': {
    source: anthropicCaching,
    behavior:
      'The request-level breakpoint may repeat that of the last block; with another `ttl` there, or four others, it is a 400.',
  },
  'anthropic:cache:lifetime': {
    source: anthropicCaching,
    behavior: 'Cached prefixes expire five minutes or an hour after their last use.',
  },
  'anthropic:cache:at-breakpoints': {
    source: anthropicCaching,
    behavior: 'Prompts are cached only up to breakpoints, and nothing after the last one is read.',
  },
  'anthropic:cache:far-back': {
    source: anthropicCaching,
    behavior: 'A cached prefix is found, also more than 20 blocks before a breakpoint.',
  },
  'anthropic:cache:exact': {
    source: anthropicCaching,
    behavior:
      'Only an identical prefix is read, with tools and keys in the same order. A text equals one block of it.',
  },
  'anthropic:cache:invalidation': {
    source: anthropicCaching,
    behavior:
      'Other tools or another model invalidate everything; another system keeps the tools; other messages keep tools and system.',
  },
  'anthropic:cache:same-answer': {
    source: anthropicCaching,
    behavior: 'An answer is the same without a breakpoint, when it writes and when it reads.',
  },
  'anthropic:cache:nobody-waits': {
    source: anthropicCaching,
    behavior: 'A request does not wait for another one that is about to write the prefix.',
  },
  'anthropic:messages:context-length': {
    source: anthropicErrors,
    behavior:
      'A prompt longer than the context is a 400 with the text that agents match on, complete and streamed.',
  },
  'anthropic:messages:stream-order': {
    source: anthropicStreaming,
    behavior: 'A stream of text is message_start, one block with its pieces, message_delta and message_stop.',
  },
  'anthropic:messages:stream-frames': {
    source: anthropicStreaming,
    behavior: 'Every frame has the name of its type, the last one its blank line, and there is no `[DONE]`.',
  },
  'anthropic:messages:stream-usage': {
    source: anthropicStreaming,
    behavior:
      'The first event has all of the input and no output; the last usage is cumulative and repeats the input.',
  },
  'anthropic:messages:stream-joins-to-whole': {
    source: anthropicStreaming,
    behavior: 'The pieces of a stream are the whole answer, also in emoji and Chinese.',
  },
  'anthropic:messages:stream-error': {
    source: anthropicErrors,
    behavior: 'A failure in a stream is an event `error` at its end, and the server serves the next call.',
  },
  'anthropic:messages:stream-of-invalid-request': {
    source: anthropicStreaming,
    behavior: 'An invalid request for a stream has a status code.',
  },
  'anthropic:messages:stream-client-leaves': {
    source: anthropicStreaming,
    behavior: 'A client that disconnects ends the generation.',
  },
  'anthropic:count:prompt': {
    source: anthropicCount,
    behavior: 'The count is that of the input of the same call, and needs no `max_tokens`.',
  },
  'anthropic:count:invalid': {
    source: anthropicCount,
    behavior: 'Requests that are rejected by messages are rejected by counting.',
  },
  'anthropic:count:unknown-model': {
    source: anthropicCount,
    behavior: 'Counting for an unknown model is a 404.',
  },
  'anthropic:models:list': {
    source: anthropicModels,
    behavior: 'The list has the shape of a page, with the models as Anthropic describes them.',
  },
  'anthropic:models:list-by-header': {
    source: anthropicModels,
    behavior: 'The `anthropic-version` header decides between the lists of two APIs on one path.',
  },
  'anthropic:models:pages': {
    source: anthropicModels,
    behavior: '`limit`, `after_id` and `before_id` choose a page; what is out of range is a 400.',
  },
  'anthropic:models:retrieve': {
    source: anthropicModels,
    behavior: 'A model is found by its name, with or without its tag.',
  },
  'anthropic:models:retrieve-unknown': {
    source: anthropicModels,
    behavior: 'An unknown model is a 404 with the message `model: <id>`, slashes and all.',
  },
  'ollama:home:says-that-it-runs': {
    source: ollamaRoutes,
    behavior: '`GET /` is the text `Ollama is running`, and `HEAD /` the same without it.',
  },
  'ollama:home:wrong-method': {
    source: ollamaRoutes,
    behavior: 'Another method on `/` is a 405 with the allowed methods.',
  },
  'ollama:version:shape': {
    source: ollamaVersion,
    behavior: 'The version is three numbers, which clients compare.',
  },
  'ollama:transport:content-type-has-no-say': {
    source: ollamaRoutes,
    behavior: 'A body is parsed as JSON, whatever its content-type.',
  },
  'ollama:transport:accept-has-no-say': {
    source: ollamaStreaming,
    behavior: 'Only `stream` determines whether the response is a stream, never `accept`.',
  },
  'ollama:transport:any-key-is-accepted': {
    source: ollamaAuthentication,
    behavior: 'Without authentication set up, any key is accepted, and none.',
  },
  'ollama:transport:request-id': {
    source: ollamaRoutes,
    behavior: 'Every response of a route, also an error, has a unique `x-request-id`.',
  },
  'ollama:transport:browsers': {
    source: ollamaFaq,
    behavior: 'A CORS preflight allows the headers of the clients.',
  },
  'ollama:transport:head': {
    source: ollamaRoutes,
    behavior: 'GET routes respond to HEAD without a body.',
  },
  'ollama:errors:unknown-path': {
    source: ollamaErrors,
    behavior: "An unknown path under `/api` is a 404 with the text of Ollama's router.",
  },
  'ollama:errors:wrong-method': {
    source: ollamaRoutes,
    behavior: 'A known path with another method is a 405 with the allowed methods.',
  },
  'ollama:errors:body-is-not-json': {
    source: ollamaErrors,
    behavior: 'A body that is not JSON, and none at all, is a 400.',
  },
  'ollama:errors:too-large-body': {
    source: ollamaErrors,
    behavior: 'A body over the limit is a 413 with a text as its `error`.',
  },
  'ollama:errors:engine-failure': {
    source: ollamaErrors,
    behavior: 'An internal failure is a 500 without stack or path.',
  },
  'ollama:errors:overloaded': {
    source: ollamaErrors,
    behavior: 'An overloaded server responds with 503 and `retry-after` in whole seconds.',
  },
  'ollama:limits:on-every-answer': {
    source: ollamaErrors,
    behavior: 'Every model response, also a stream, has `x-ratelimit-*` headers with durations.',
  },
  'ollama:limits:to-nobody-else': {
    source: ollamaErrors,
    behavior: 'A caller without limits gets no limit headers.',
  },
  'ollama:limits:refused': {
    source: ollamaErrors,
    behavior:
      'A request over a limit is a 429. `retry-after` and `retry-after-ms` are the time until the limit has room.',
  },
  'ollama:limits:too-many-at-once': {
    source: ollamaErrors,
    behavior: 'A request over the limit of concurrent requests is a 429 with `retry-after` of one second.',
  },
  'ollama:limits:spent': {
    source: ollamaErrors,
    behavior: 'A key at its spending limit gets a 429 with a text; it can still list and show models.',
  },
  'ollama:limits:queue-is-full': {
    source: ollamaErrors,
    behavior: 'A request to a full queue is a 503 with `retry-after`, complete and streamed.',
  },
  'ollama:errors:before-the-first-line': {
    source: ollamaErrors,
    behavior: 'What fails before the first line has a status code, also where a stream was asked for.',
  },
  'ollama:errors:in-a-stream': {
    source: ollamaErrors,
    behavior: 'What fails later is a last line with the `error`, and the server serves the next call.',
  },
  'ollama:errors:context-length': {
    source: ollamaErrors,
    behavior: 'A prompt longer than the context is a 400 that explains it, complete and streamed.',
  },
  'ollama:body:null': {
    source: ollamaRoutes,
    behavior: 'A null body is an empty one: the error names the missing field.',
  },
  'ollama:body:null-means-absent': {
    source: ollamaTypes,
    behavior: 'Every field may be null, which means the same as absent.',
  },
  'ollama:body:unknown-fields': {
    source: ollamaTypes,
    behavior: 'Unknown fields, of a body and of a message, are ignored.',
  },
  'ollama:body:names-in-any-case': {
    source: ollamaTypes,
    behavior: 'The names of fields may be written in upper or lower case, in messages, too.',
  },
  'ollama:body:duplicate-names': {
    source: ollamaTypes,
    behavior: 'The last of two fields with the same name counts.',
  },
  'ollama:body:wrong-type': {
    source: ollamaErrors,
    behavior: 'A field of a wrong type is a 400 that names it, in whatever case it was sent.',
  },
  'ollama:names:echoed': {
    source: ollamaRoutes,
    behavior: 'An answer names the model as the client did.',
  },
  'ollama:names:any-case': {
    source: ollamaNames,
    behavior: 'Model names ignore case and default parts.',
  },
  'ollama:names:local': {
    source: ollamaRoutes,
    behavior: 'A name that ends with `:local` is that of a model here.',
  },
  'ollama:names:missing': {
    source: ollamaRoutes,
    behavior: 'Without a model, generate is a 404, chat and show are a 400, each in its words.',
  },
  'ollama:names:invalid': {
    source: ollamaRoutes,
    behavior: 'A text that cannot be a name is a 400: `invalid model name`.',
  },
  'ollama:names:unknown': {
    source: ollamaRoutes,
    behavior: 'An unknown model is a 404 that names it as it was asked for, and in show with its tag.',
  },
  'ollama:names:cloud': {
    source: ollamaRoutes,
    behavior: 'A cloud model is a 403 and does not reach the engine.',
  },
  'ollama:generate:streams-by-default': {
    source: ollamaStreaming,
    behavior: 'An answer is a stream of lines of JSON, unless `stream` is false.',
  },
  'ollama:generate:lines': {
    source: ollamaGenerate,
    behavior: 'A line is a piece of the answer, in the fields and order of the reference.',
  },
  'ollama:generate:last-line': {
    source: ollamaUsage,
    behavior: 'The last line alone has the reason, the counts, and the times in nanoseconds.',
  },
  'ollama:generate:times-are-never-zero': {
    source: ollamaUsage,
    behavior: 'Durations are at least a nanosecond, since clients divide by them.',
  },
  'ollama:generate:whole': {
    source: ollamaGenerate,
    behavior: 'A whole answer is one object with all of it.',
  },
  'ollama:generate:stream-joins-to-whole': {
    source: ollamaStreaming,
    behavior: 'The pieces of a stream are the whole answer, also in emoji and Chinese.',
  },
  'ollama:generate:context-out': {
    source: ollamaGenerate,
    behavior: 'The end has prompt and answer as `context`, in the last line or in the whole.',
  },
  'ollama:generate:context-in': {
    source: ollamaGenerate,
    behavior: 'A `context` stands before the prompt, and is no part of the template.',
  },
  'ollama:generate:raw': {
    source: ollamaGenerate,
    behavior: 'A raw prompt has no template, and its response has no `context` and no separated reasoning.',
  },
  'ollama:generate:raw-is-all': {
    source: ollamaRoutes,
    behavior: 'A raw prompt with `system` or `context` is a 400.',
  },
  'ollama:generate:system': {
    source: ollamaGenerate,
    behavior: '`system` is the system message of the prompt; an empty one is none.',
  },
  'ollama:generate:thinking': {
    source: ollamaThinking,
    behavior: 'Reasoning is separate from the response, complete and streamed.',
  },
  'ollama:generate:load': {
    source: ollamaFaq,
    behavior:
      'Without a prompt a model is loaded: one object, also where a stream was asked for, without times.',
  },
  'ollama:generate:unload': {
    source: ollamaFaq,
    behavior: 'Without a prompt, `keep_alive` of 0 unloads a model: one object, also for a stream.',
  },
  'ollama:generate:render-only': {
    source: ollamaTypes,
    behavior: '`_debug_render_only` shows the prompt and asks no model.',
  },
  'ollama:generate:not-built': {
    source: ollamaGenerate,
    behavior: 'Images are a 400 that names them, never ignored; a template reaches the model.',
  },
  'ollama:generate:encoder': {
    source: ollamaRoutes,
    behavior: 'A pooling model is a 400: it does not support generate. It can be unloaded.',
  },
  'ollama:chat:streams-by-default': {
    source: ollamaStreaming,
    behavior: 'An answer is a stream of lines of JSON, unless `stream` is false.',
  },
  'ollama:chat:lines': {
    source: ollamaChat,
    behavior: 'Every line has a message with its role, and the last one an empty message.',
  },
  'ollama:chat:last-line': {
    source: ollamaUsage,
    behavior: 'The last line alone has the reason, the counts, and the times, and never a `context`.',
  },
  'ollama:chat:whole': {
    source: ollamaChat,
    behavior: 'A whole answer is one object with all of it.',
  },
  'ollama:chat:stream-is-live': {
    source: ollamaStreaming,
    behavior: 'The first lines arrive while the answer is being generated.',
  },
  'ollama:chat:client-leaves': {
    source: ollamaStreaming,
    behavior: 'A client that disconnects ends the generation.',
  },
  'ollama:chat:load': {
    source: ollamaFaq,
    behavior:
      'Without messages a model is loaded: one object, also where a stream was asked for, without times.',
  },
  'ollama:chat:unload': {
    source: ollamaFaq,
    behavior: 'Without messages, `keep_alive` of 0 unloads a model.',
  },
  'ollama:chat:roles': {
    source: ollamaTypes,
    behavior: 'A role is in any case, is one that only some templates know, or is none, and then the user.',
  },
  'ollama:chat:developer-is-system': {
    source: ollamaTypes,
    behavior: 'A developer message is a system message.',
  },
  'ollama:chat:system-among-messages': {
    source: ollamaChat,
    behavior: 'A system message stays where it is.',
  },
  'ollama:chat:prefill': {
    source: ollamaRoutes,
    behavior: 'A trailing assistant message is continued, and the answer is only what follows.',
  },
  'ollama:chat:earlier-thoughts': {
    source: ollamaThinking,
    behavior: 'Reasoning of earlier turns reaches the model beside their text.',
  },
  'ollama:chat:images-are-refused': {
    source: ollamaChat,
    behavior: 'An image is a 400 that names the message; an empty list is none.',
  },
  'ollama:chat:not-built': {
    source: ollamaChat,
    behavior: 'An option that would change the answer is a 400 that names it, never ignored.',
  },
  'ollama:chat:encoder': {
    source: ollamaRoutes,
    behavior: 'A pooling model is a 400: it does not support chat. It can be unloaded.',
  },
  'ollama:chat:thinking': {
    source: ollamaThinking,
    behavior: 'Reasoning comes first, beside an empty content; without any the key is omitted.',
  },
  'ollama:tools:reach-the-model': {
    source: ollamaChat,
    behavior: 'Tools reach the model with their schemas as they are; an empty list is none.',
  },
  'ollama:tools:streamed': {
    source: ollamaTools,
    behavior: 'Each call is one complete line with its arguments as an object; the reason is `stop`.',
  },
  'ollama:tools:whole': {
    source: ollamaTools,
    behavior: 'A whole answer has all calls in order, beside its text and its thoughts.',
  },
  'ollama:tools:broken-off': {
    source: ollamaTools,
    behavior: 'A call that the limit cuts is omitted, and the reason is `length`.',
  },
  'ollama:tools:history': {
    source: ollamaTools,
    behavior:
      'Earlier calls and results reach the model, and belong together by name and order, without ids.',
  },
  'ollama:tools:round-trip': {
    source: ollamaTools,
    behavior: 'An answer with calls can be sent back as it is, with results by id in any order.',
  },
  'ollama:tools:cannot': {
    source: ollamaRoutes,
    behavior: 'Tools for a model without them are a 400: it does not support tools.',
  },
  'ollama:format:forms': {
    source: ollamaStructured,
    behavior: 'A format is `json` or a JSON Schema with its properties in order; empty or null is none.',
  },
  'ollama:format:anything-else': {
    source: ollamaStructured,
    behavior: 'Any other format is a 400 with the valid ones.',
  },
  'ollama:format:engine-errors': {
    source: ollamaStructured,
    behavior:
      'An unsupported schema, of the output or of a tool, is a 400 that names it, complete and streamed.',
  },
  'ollama:logprobs:streamed': {
    source: ollamaTypes,
    behavior:
      'Log probabilities stand in the line of their text, of thoughts too, with the bytes of each token.',
  },
  'ollama:logprobs:whole': {
    source: ollamaTypes,
    behavior:
      'A whole answer has them all, each with as many alternatives as were asked for, or without the key.',
  },
  'ollama:logprobs:only-if-asked': {
    source: ollamaTypes,
    behavior: '`top_logprobs` alone asks for nothing.',
  },
  'ollama:generate:suffix': {
    source: ollamaGenerate,
    behavior: 'With a suffix the model fills the gap, and nothing else is put around it.',
  },
  'ollama:embed:shape': {
    source: ollamaEmbed,
    behavior: 'Vectors come in a list, also one alone, with counts and times.',
  },
  'ollama:embed:inputs': {
    source: ollamaEmbed,
    behavior: 'A list of texts comes to a vector each, in order, also an empty text in a list.',
  },
  'ollama:embed:nothing': {
    source: ollamaRoutes,
    behavior: 'Without an input the model is loaded or unloaded, and there are no embeddings.',
  },
  'ollama:embed:options': {
    source: ollamaEmbed,
    behavior: 'What is too long is cut unless `truncate` is false; `dimensions` that are none are ignored.',
  },
  'ollama:embed:errors': {
    source: ollamaRoutes,
    behavior: 'A missing model has the error text of these routes, and a too long text is a 400.',
  },
  'ollama:embeddings:shape': {
    source: ollamaEmbed,
    behavior: 'The older route answers a prompt with one vector, and cuts nothing.',
  },
  'ollama:think:by-default': {
    source: ollamaThinking,
    behavior: 'A model with reasoning uses it, unless `think` is false.',
  },
  'ollama:think:levels': {
    source: ollamaThinking,
    behavior: '`low`, `medium`, `high` and `max` enable reasoning, and reach the template.',
  },
  'ollama:think:anything-else': {
    source: ollamaTypes,
    behavior: 'Any other value is a 400 with the valid ones.',
  },
  'ollama:think:cannot': {
    source: ollamaThinking,
    behavior: "`think` for a model without reasoning is a 400 with Ollama's text, unless it is false.",
  },
  'ollama:options:defaults': {
    source: ollamaOptions,
    behavior: "Missing options reach the model with Ollama's defaults.",
  },
  'ollama:options:reach-the-model': {
    source: ollamaOptions,
    behavior: 'Every option that changes the answer reaches the model.',
  },
  'ollama:options:fractions': {
    source: ollamaTypes,
    behavior: 'A whole number that is written with a fraction is cut.',
  },
  'ollama:options:null': {
    source: ollamaTypes,
    behavior: 'An option that is null is as if it were not there.',
  },
  'ollama:options:unknown': {
    source: ollamaTypes,
    behavior: 'Unknown and retired options are ignored.',
  },
  'ollama:options:about-speed': {
    source: ollamaOptions,
    behavior: 'Options that only affect speed do not change the answer.',
  },
  'ollama:options:wrong-types': {
    source: ollamaTypes,
    behavior: 'An option of a wrong type is a 400 that names it; a single `stop` is no list.',
  },
  'ollama:options:num-predict': {
    source: ollamaOptions,
    behavior:
      '`num_predict` is the limit of tokens, and the reason is then `length`; a negative one is no limit.',
  },
  'ollama:options:num-predict-zero': {
    source: ollamaOptions,
    behavior: '`num_predict` of 0 loads the model without generating.',
  },
  'ollama:options:stop': {
    source: ollamaOptions,
    behavior: '`stop` is a list of texts, and an empty one in it means nothing.',
  },
  'ollama:options:seed': {
    source: ollamaOptions,
    behavior: 'A negative seed is random, whatever the Modelfile sets.',
  },
  'ollama:options:num-ctx': {
    source: ollamaOptions,
    behavior: '`num_ctx` is the context size; zero or less means unset.',
  },
  'ollama:keep-alive:forms': {
    source: ollamaFaq,
    behavior: '`keep_alive` is in seconds or a duration; a negative one never expires.',
  },
  'ollama:keep-alive:absent': {
    source: ollamaFaq,
    behavior: 'Without it, or with null, the keep-alive of the model stays.',
  },
  'ollama:keep-alive:anything-else': {
    source: ollamaTypes,
    behavior: 'Anything else is a 400, also a number of seconds as a text.',
  },
  'ollama:truncate:forms': {
    source: ollamaTypes,
    behavior: 'Old messages are left out where a prompt is too long, unless `truncate` is false.',
  },
  'ollama:tags:shape': {
    source: ollamaTags,
    behavior: 'The list has every model with its tag, its digest and its details.',
  },
  'ollama:tags:newest-first': {
    source: ollamaRoutes,
    behavior: 'The newest model comes first.',
  },
  'ollama:show:shape': {
    source: ollamaShow,
    behavior: 'A model is described in the fields of the reference.',
  },
  'ollama:show:insert': {
    source: ollamaShow,
    behavior: 'A model whose file names the tokens around a gap can `insert`, in the list, too.',
  },
  'ollama:show:lists': {
    source: ollamaShow,
    behavior: 'Long lists of the metadata are null, unless `verbose` is true.',
  },
  'ollama:show:model-info': {
    source: ollamaShow,
    behavior: 'The metadata has no name or template, and has the parameter count.',
  },
  'ollama:show:name': {
    source: ollamaShow,
    behavior: '`name` is the deprecated name of `model`.',
  },
  'ollama:show:system': {
    source: ollamaShow,
    behavior: 'A `system` is shown as it was asked for, a `template` is not.',
  },
  'ollama:show:no-paths': {
    source: ollamaShow,
    behavior: 'show does not reveal the paths of files.',
  },
  'ollama:ps:none': {
    source: ollamaRunning,
    behavior: 'Without a loaded model the list is empty, and never null.',
  },
  'ollama:ps:shape': {
    source: ollamaRunning,
    behavior: 'A loaded model has its memory, its context size and its expiry.',
  },
  'ollama:ps:order': {
    source: ollamaRunning,
    behavior: 'The latest expiry comes first; a model that never expires has a date centuries ahead.',
  },
  'ollama:routes:root': {
    source: ollamaRoutes,
    behavior: '`GET /` and `HEAD /` are answered.',
  },
  'ollama:routes:version': {
    source: ollamaRoutes,
    behavior: '`GET` and `HEAD /api/version` are answered.',
  },
  'ollama:routes:status': {
    source: ollamaRoutes,
    behavior: '`GET /api/status` reports that the cloud is disabled.',
  },
  'ollama:routes:tags': {
    source: ollamaRoutes,
    behavior: '`GET` and `HEAD /api/tags` are answered.',
  },
  'ollama:routes:ps': {
    source: ollamaRoutes,
    behavior: '`GET /api/ps` is answered.',
  },
  'ollama:routes:show': {
    source: ollamaRoutes,
    behavior: '`POST /api/show` is answered.',
  },
  'ollama:routes:generate': {
    source: ollamaRoutes,
    behavior: '`POST /api/generate` is answered.',
  },
  'ollama:routes:chat': {
    source: ollamaRoutes,
    behavior: '`POST /api/chat` is answered.',
  },
  'ollama:routes:embed': {
    source: ollamaRoutes,
    behavior: '`POST /api/embed` is answered.',
  },
  'ollama:routes:embeddings': {
    source: ollamaRoutes,
    behavior: '`POST /api/embeddings` is answered.',
  },
  'ollama:routes:create': {
    source: ollamaRoutes,
    behavior: '`POST /api/create` makes a model of a blob, and one of another model.',
  },
  'ollama:routes:copy': {
    source: ollamaRoutes,
    behavior: '`POST /api/copy` gives a model a second name.',
  },
  'ollama:routes:delete': {
    source: ollamaRoutes,
    behavior: '`DELETE /api/delete` takes a model away, once.',
  },
  'ollama:routes:pull': {
    source: ollamaRoutes,
    behavior: '`POST /api/pull` reports progress and errors.',
  },
  'ollama:routes:push': {
    source: ollamaRoutes,
    behavior: '`POST /api/push` reports progress and errors.',
  },
  'ollama:routes:blobs': {
    source: ollamaRoutes,
    behavior: '`HEAD` and `POST /api/blobs/:digest` find a blob, and take one.',
  },
  'ollama:routes:account': {
    source: ollamaRoutes,
    behavior: 'Without a cloud there is no account: `/api/me` is a 503 on purpose, and signing out fails.',
  },
  'ollama:routes:web': {
    source: ollamaRoutes,
    behavior: 'Without a cloud the web is neither searched nor fetched: a 403 on purpose.',
  },
  'ollama:routes:recommendations': {
    source: ollamaRoutes,
    behavior: '`GET /api/experimental/model-recommendations` recommends none.',
  },
  'ollama:routes:v1': {
    source: ollamaRoutes,
    behavior: 'What Ollama has of the APIs of OpenAI and Anthropic is answered.',
  },
  'ollama:routes:not-here': {
    source: ollamaRoutes,
    behavior: 'Paths that Ollama does not have either are a 404.',
  },
  'ollama:routes:scope': {
    source: ollamaRoutes,
    behavior: 'Routes that change models need the scope `models`; without it they are a 403.',
  },
  'ollama:blobs:large': {
    source: ollamaRoutes,
    behavior: 'A blob may be larger than any other body.',
  },
  'ollama:blobs:parsed-body': {
    source: ollamaRoutes,
    behavior:
      'A blob that an earlier body parser has read is taken from its bytes; without them it is a 400 with instructions.',
  },
  'ollama:blobs:client-leaves': {
    source: ollamaRoutes,
    behavior: 'Nothing is stored of a blob whose client disconnects.',
  },
  'ollama:points:01-not-found': {
    source: ollamaRoutes,
    behavior:
      'Each route has its own text for a missing model; without a name it is a 404 in one and a 400 in others.',
  },
  'ollama:points:02-options': {
    source: ollamaRoutes,
    behavior:
      'An option of a wrong type is a 400, as is an invalid `keep_alive`; an unknown option is ignored.',
  },
  'ollama:points:03-load-and-unload': {
    source: ollamaRoutes,
    behavior: 'The response to loading or unloading is one JSON object without durations.',
  },
  'ollama:points:04-last-line': {
    source: ollamaTypes,
    behavior: 'The last line of generate has the `context`, and a `load_duration` above zero.',
  },
  'ollama:points:05-whole-prompt': {
    source: ollamaRoutes,
    behavior: '`prompt_eval_count` counts the whole prompt, with reused tokens.',
  },
  'ollama:points:06-thinking': {
    source: ollamaRoutes,
    behavior:
      "A model with reasoning uses it by default. Under `/v1` its template decides, except in Anthropic's API, where reasoning is off by default.",
  },
  'ollama:points:07-pull-errors': {
    source: ollamaStreaming,
    behavior: 'Errors of a pull are in the stream, whose status is 200.',
  },
  'ollama:points:08-progress': {
    source: ollamaStreaming,
    behavior: 'Progress lines omit empty fields.',
  },
  'ollama:points:09-whole-calls': {
    source: ollamaRoutes,
    behavior: "Calls are whole; natively their arguments are an object, in OpenAI's API a text.",
  },
  'ollama:points:10-v1-sampling': {
    source: ollamaRoutes,
    behavior: 'Chat completions sample at temperature 1 and top_p 1 by default.',
  },
  'ollama:points:11-digests': {
    source: ollamaRoutes,
    behavior: 'The digests of tags and ps are 64 hexadecimal digits without a prefix.',
  },
  'ollama:points:12-model-info': {
    source: ollamaRoutes,
    behavior: 'show always has a `model_info`.',
  },
  'ollama:points:13-refused-pages': {
    source: ollamaRoutes,
    behavior: 'A disallowed origin or a foreign `Host` gets a 403 without a body.',
  },
  'ollama:points:14-delete-and-mismatch': {
    source: ollamaRoutes,
    behavior:
      'A deleted model stays loaded; a blob with another digest is rejected, and stored under its actual one.',
  },
  'ollama:points:15-names': {
    source: ollamaRoutes,
    behavior: 'Names are found in any case, listed with their tags, and echoed as they were asked.',
  },
  'ollama:clients:no-error-key': {
    source: ollamaJs,
    behavior: 'No line but that of an error has a key `error`.',
  },
} as const satisfies Record<string, Requirement>

export type RequirementId = keyof typeof requirements
export type OpenAIRequirementId = Extract<RequirementId, `openai:${string}`>
export type AnthropicRequirementId = Extract<RequirementId, `anthropic:${string}`>
export type OllamaRequirementId = Extract<RequirementId, `ollama:${string}`>
