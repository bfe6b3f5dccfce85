/**
 * Behavior of the public APIs that clients rely on. `openai.ts`, `anthropic.ts` and `ollama.ts` check each
 * requirement once.
 */

export interface Requirement {
  /** Section of the documentation, or source file, that the behavior comes from. */
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
const files = 'OpenAI API reference, Files'
const batch = 'OpenAI API reference, Batch'
const deepSeek = 'DeepSeek API docs, Reasoning model'
const rerank = 'Jina API, Reranker'
const llamaServer = 'llama.cpp server README, API Endpoints'
const vllm = 'vLLM documentation, OpenAI-Compatible Server, Extra Parameters'
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
const anthropicBatches = 'Anthropic API reference, Message Batches'
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
    behavior: 'With `auth: anonymous`, any bearer key is accepted.',
  },
  'openai:auth:no-key-is-needed': {
    source: authentication,
    behavior: 'With `auth: anonymous`, a call without a key is answered.',
  },
  'openai:transport:request-id': {
    source: debugging,
    behavior: 'Every response, including errors, has a unique `x-request-id`.',
  },
  'openai:transport:client-headers-have-no-effect': {
    source: debugging,
    behavior: 'Headers for organization, project, beta and client do not change the answer.',
  },
  'openai:transport:parsed-body': {
    source: create,
    behavior: 'A body that an earlier body parser has read gets the same response as an unread body.',
  },
  'openai:transport:large-body': {
    source: create,
    behavior: 'A body of 3 MB, such as one with an inlined image, is not rejected for its size.',
  },
  'openai:transport:too-large-body': {
    source: errors,
    behavior: 'A body over the limit gets a 413 in the error envelope.',
  },
  'openai:errors:body-is-not-json': {
    source: errors,
    behavior: 'A body that is not JSON gets a 400 in the error envelope.',
  },
  'openai:errors:body-is-not-an-object': {
    source: errors,
    behavior: 'A JSON body that is not an object gets a 400.',
  },
  'openai:errors:wrong-method': {
    source: errors,
    behavior: 'A known path with another method gets a 405 in the error envelope, with the allowed methods.',
  },
  'openai:errors:unknown-path': {
    source: errors,
    behavior: 'An unknown path gets a 404 in the error envelope, and its message names the path.',
  },
  'openai:errors:engine-failure': {
    source: errors,
    behavior: 'An internal failure causes a 500 of type `server_error` without a stack trace or file path.',
  },
  'openai:errors:overloaded': {
    source: errors,
    behavior: 'An overloaded server responds with 503 and `retry-after` in whole seconds.',
  },
  'openai:limits:headers-on-every-response': {
    source: rateLimits,
    behavior: 'Every response of a model, streamed or not, has `x-ratelimit-*` headers with durations.',
  },
  'openai:limits:no-headers-without-limits': {
    source: rateLimits,
    behavior: 'A caller without limits gets no limit headers.',
  },
  'openai:limits:over-the-limit': {
    source: rateLimits,
    behavior:
      'A request over a limit gets a 429. `retry-after` and `retry-after-ms` are the time until the limit has room.',
  },
  'openai:limits:too-many-at-once': {
    source: rateLimits,
    behavior: 'A request over the limit of concurrent requests gets a 429 with `retry-after` of one second.',
  },
  'openai:limits:spending-limit': {
    source: errors,
    behavior:
      'A key at its spending limit gets a 429 `insufficient_quota` that forbids retries. It can still list models.',
  },
  'openai:limits:queue-is-full': {
    source: errors,
    behavior: 'A request to a full queue gets a 503 with `retry-after`, with and without `stream`.',
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
    behavior: 'An unknown model gets a 404 with the code `model_not_found`, with and without `stream`.',
  },
  'openai:chat:missing-model': {
    source: create,
    behavior: 'A request without `model` gets a 400 that names the field.',
  },
  'openai:chat:missing-messages': {
    source: create,
    behavior: 'A request without `messages` gets a 400 that names the field.',
  },
  'openai:chat:whole-shape': {
    source: object,
    behavior: 'A non-streamed response has every field of the chat completion object.',
  },
  'openai:chat:unicode': {
    source: object,
    behavior: 'Emoji and Japanese arrive unchanged at the model and at the client.',
  },
  'openai:chat:max-tokens': {
    source: create,
    behavior: '`max_tokens` ends the answer after exactly that many tokens, with finish reason `length`.',
  },
  'openai:chat:max-completion-tokens-wins': {
    source: create,
    behavior: '`max_completion_tokens` overrides `max_tokens`.',
  },
  'openai:chat:max-tokens-zero': {
    source: create,
    behavior: '`max_tokens` of 0 gets a 400.',
  },
  'openai:chat:max-tokens-minus-one': {
    source: create,
    behavior: '`max_tokens` of -1 means no limit.',
  },
  'openai:chat:temperature-range': {
    source: create,
    behavior: 'A temperature above 2 or below 0 gets a 400 that names the bound.',
  },
  'openai:chat:top-p-range': {
    source: create,
    behavior: '`top_p` above 1 gets a 400 that names the bound.',
  },
  'openai:chat:empty-messages': {
    source: create,
    behavior: 'An empty list of messages gets a 400.',
  },
  'openai:chat:message-without-role': {
    source: create,
    behavior: 'A message without a role gets a 400 that names the position of the message.',
  },
  'openai:chat:message-with-unknown-role': {
    source: create,
    behavior: 'A message of an unknown role gets a 400 that names the position of the message.',
  },
  'openai:chat:text-parts': {
    source: create,
    behavior: 'Text parts of one message are joined with a line break, like in the server of llama.cpp.',
  },
  'openai:chat:developer-is-system': {
    source: create,
    behavior: 'A developer message is treated as a system message.',
  },
  'openai:chat:image-on-text-model': {
    source: create,
    behavior: 'An image for a text-only model gets a 400 that names the content part.',
  },
  'openai:chat:context-length': {
    source: errors,
    behavior:
      'A prompt longer than the context gets a 400 `context_length_exceeded` with the message that clients match on.',
  },
  'openai:chat:account-fields': {
    source: create,
    behavior: "Fields for OpenAI's own service, such as `service_tier` and `store`, are accepted.",
  },
  'openai:chat:audio-output': {
    source: create,
    behavior: 'A request for audio output gets a 400.',
  },
  'openai:chat:tool-choice-none-without-tools': {
    source: create,
    behavior: '`tool_choice` none or auto without tools gets a text answer without `tool_calls`.',
  },
  'openai:chat:functions-are-rejected': {
    source: create,
    behavior: 'The deprecated field `functions` gets a 400 that names it.',
  },
  'openai:chat:n-range': {
    source: create,
    behavior: '`n` of 0 or above 128 gets a 400 that names the bound.',
  },
  'openai:chat:stop-forms': {
    source: create,
    behavior: '`stop` is a string, a list of strings, or null. Empty strings in it are ignored.',
  },
  'openai:chat:logit-bias': {
    source: create,
    behavior:
      '`logit_bias` reaches the model by token id, or by text. Another number as a key gets a 400 that names it.',
  },
  'openai:chat:top-logprobs-range': {
    source: create,
    behavior: '`top_logprobs` without `logprobs`, or above 20, gets a 400.',
  },
  'openai:chat:max-tokens-beyond-the-context': {
    source: create,
    behavior: 'A `max_tokens` larger than any context is accepted.',
  },
  'openai:chat:response-format-unknown': {
    source: create,
    behavior: 'An unknown type of response format gets a 400 that names it.',
  },
  'openai:chat:client-disconnects': {
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
    behavior: 'The contents of a stream are never empty and join to the non-streamed answer.',
  },
  'openai:chat:stream-finish-reason': {
    source: chunk,
    behavior:
      'The last chunk has an empty delta and the finish reason. In earlier chunks the finish reason is null.',
  },
  'openai:chat:stream-usage': {
    source: streaming,
    behavior:
      'With `include_usage`, one last chunk without choices has the usage. In earlier chunks the usage is null.',
  },
  'openai:chat:stream-without-usage': {
    source: streaming,
    behavior: 'Without `include_usage`, no chunk has a usage.',
  },
  'openai:chat:stream-identity': {
    source: chunk,
    behavior: 'Id, time and model are the same in every chunk of a stream.',
  },
  'openai:chat:stream-error': {
    source: errors,
    behavior:
      'A failure after the start of a stream sends one last frame with the error. The server serves the next call.',
  },
  'openai:chat:stream-of-invalid-request': {
    source: streaming,
    behavior: 'An invalid request with `stream: true` gets a 400 as JSON, not a stream.',
  },
  'openai:chat:stream-client-disconnects': {
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
      'Functions reach the model. The calls of the model have an id, a name and arguments as JSON text.',
  },
  'openai:chat:stream-tools': {
    source: functions,
    behavior: 'A streamed call has its index, id and name once, followed by its arguments in pieces.',
  },
  'openai:chat:text-beside-calls': {
    source: functions,
    behavior: 'Text before a tool call stays in the content.',
  },
  'openai:chat:call-over-the-token-limit': {
    source: functions,
    behavior:
      'A non-streamed answer omits a call that is cut by the token limit, and finishes with `length`.',
  },
  'openai:chat:incomplete-call': {
    source: functions,
    behavior:
      'A call that the model leaves incomplete is omitted. A stream that began the call finishes with `length`.',
  },
  'openai:chat:tool-choice': {
    source: functions,
    behavior: '`tool_choice` may be none, auto, required, a function, or a list of allowed tools.',
  },
  'openai:chat:tool-choice-of-missing-tool': {
    source: create,
    behavior: 'A `tool_choice` that requires a missing tool gets a 400.',
  },
  'openai:chat:parallel-tool-calls': {
    source: functions,
    behavior: '`parallel_tool_calls: false` limits the model to one call.',
  },
  'openai:chat:function-fields': {
    source: functions,
    behavior: 'A function may have a description and `strict`. Without `parameters` it takes no arguments.',
  },
  'openai:chat:custom-tools': {
    source: create,
    behavior: 'A custom tool gets a 400 that names it.',
  },
  'openai:chat:tool-messages': {
    source: functions,
    behavior:
      'Calls and their results reach the model in the order of the messages, whichever result comes first.',
  },
  'openai:chat:unmatched-tool-messages': {
    source: create,
    behavior: 'A result without a call, or a call without a result, gets a 400 that names the message.',
  },
  'openai:chat:response-formats': {
    source: structured,
    behavior: '`response_format` constrains the output to a JSON object or a schema, strict or not.',
  },
  'openai:chat:response-format-beside-tools': {
    source: structured,
    behavior:
      'With tools, `response_format` constrains only text answers. It is ignored if a call is forced.',
  },
  'openai:chat:engine-errors': {
    source: structured,
    behavior: 'An unsupported schema gets a 400 that names the keyword, with and without `stream`.',
  },
  'openai:chat:response-format-incomplete': {
    source: structured,
    behavior: 'A format without a schema, and one with an invalid name, gets a 400 that names the field.',
  },
  'openai:chat:grammar': {
    source: 'llama.cpp: tools/server/README.md',
    behavior:
      "A `grammar` in llama.cpp's GBNF constrains the output. Together with `response_format` it gets a 400.",
  },
  'openai:chat:structured-outputs': {
    source: vllm,
    behavior:
      'The `guided_*` fields and `structured_outputs` constrain the output, in each route that generates text.',
  },
  'openai:chat:structured-outputs-errors': {
    source: vllm,
    behavior: 'A constraint without a grammar, an unknown or a second one, gets a 400 that names the field.',
  },
  'openai:chat:logprobs': {
    source: object,
    behavior: 'Each token has its bytes, its logprob and the most likely alternatives.',
  },
  'openai:chat:logprobs-without-alternatives': {
    source: object,
    behavior:
      'Without `top_logprobs` the list of alternatives is empty. An impossible token has a logprob of -9999.',
  },
  'openai:chat:stream-logprobs': {
    source: chunk,
    behavior: 'Each chunk has the logprobs of its own tokens.',
  },
  'openai:chat:reasoning': {
    source: deepSeek,
    behavior:
      'Reasoning is in `reasoning_content` and `reasoning`, never in the content. Its tokens are counted separately.',
  },
  'openai:chat:reasoning-effort': {
    source: create,
    behavior:
      '`reasoning_effort: none` disables reasoning. Other values enable it and reach the template. Without the field the template decides.',
  },
  'openai:chat:template-variables': {
    source: 'llama.cpp: tools/server/README.md',
    behavior:
      "`chat_template_kwargs`, including `enable_thinking`, are variables of the model's chat template.",
  },
  'openai:transport:head': {
    source: llamaServer,
    behavior: 'Each GET route answers HEAD with the same status and headers, without a body.',
  },
  'openai:chat:prompt-end': {
    source: vllm,
    behavior:
      '`continue_final_message` continues an assistant message, and `add_generation_prompt: false` starts no answer.',
  },
  'openai:chat:prompt-end-errors': {
    source: vllm,
    behavior:
      'Contradicting fields, and a last message that cannot be continued, get a 400 that names the field.',
  },
  'openai:chat:progress': {
    source: llamaServer,
    behavior:
      'A stream reports the progress of its prompt with `return_progress`, and its times with `timings_per_token`, in each route.',
  },
  'openai:chat:refusals-sent-back': {
    source: create,
    behavior: 'A refusal of a hosted model in an earlier turn is accepted as text.',
  },
  'openai:chat:reasoning-sent-back': {
    source: deepSeek,
    behavior: "Reasoning of earlier turns reaches the model's chat template.",
  },
  'openai:completions:whole-shape': {
    source: text,
    behavior:
      'A non-streamed response is a `text_completion` with text, usage and a creation time in seconds.',
  },
  'openai:completions:bare-prompt': {
    source: text,
    behavior: 'The prompt is continued without a chat template.',
  },
  'openai:completions:max-tokens': {
    source: text,
    behavior:
      'Without `max_tokens` an answer has at most 16 tokens. -1 means no limit, and 0 without `echo` gets a 400.',
  },
  'openai:completions:prompt-forms': {
    source: text,
    behavior: 'A prompt may be text, token ids, or a list of these.',
  },
  'openai:completions:several-prompts': {
    source: text,
    behavior:
      'Each prompt has its own choice, in order, with and without `stream`. The usage counts all prompts.',
  },
  'openai:completions:concurrent-prompts': {
    source: text,
    behavior:
      'Without `stream`, several prompts are generated concurrently and returned in order. A failure cancels all of them.',
  },
  'openai:completions:stream': {
    source: text,
    behavior:
      'A stream has chunks of text, a chunk with the finish reason, the usage on request, and `[DONE]`.',
  },
  'openai:completions:echo': {
    source: text,
    behavior: 'With `echo` the text begins with the prompt, also if the prompt is token ids.',
  },
  'openai:completions:echo-logprobs': {
    source: text,
    behavior:
      'With `echo` the `logprobs` begin with the prompt tokens, the first with null. `max_tokens: 0` returns only the prompt tokens.',
  },
  'openai:completions:suffix': {
    source: text,
    behavior: 'With a `suffix` the model fills the gap between prompt and suffix.',
  },
  'openai:completions:logprobs': {
    source: text,
    behavior:
      '`logprobs` are parallel lists with text offsets. The sampled token is always among the alternatives.',
  },
  'openai:completions:errors': {
    source: errors,
    behavior: 'A failure before the first token gets a status code. A failure in a stream is its last event.',
  },
  'openai:completions:bad-input': {
    source: text,
    behavior: 'An invalid field gets a 400 that names it, and nothing reaches the model.',
  },
  'openai:responses:whole-shape': {
    source: responseObject,
    behavior: 'A non-streamed response has all fields of the reference, and a message with the text.',
  },
  'openai:responses:echoed-fields': {
    source: responseObject,
    behavior: 'The response repeats the fields of the request, except `store`, which is always false.',
  },
  'openai:responses:null-means-absent': {
    source: response,
    behavior: 'A null field means the same as an absent one, and unknown fields are ignored.',
  },
  'openai:responses:input-forms': {
    source: response,
    behavior:
      'The input is text or a list of items. A message needs no `type`, and its content is text or parts.',
  },
  'openai:responses:instructions': {
    source: response,
    behavior: '`instructions` become the first system message, before all of the input.',
  },
  'openai:responses:turns': {
    source: response,
    behavior:
      'Consecutive reasoning, messages and calls become one turn of the model, followed by the results of the calls.',
  },
  'openai:responses:unmatched-results': {
    source: response,
    behavior: 'A result without a call, or a call without a result, gets a 400 that names the item.',
  },
  'openai:responses:limit': {
    source: responseObject,
    behavior: 'An answer cut by the token limit is `incomplete`, with status 200, and so is its last item.',
  },
  'openai:responses:sampling': {
    source: response,
    behavior: 'Sampling fields, `max_output_tokens` and `truncation` reach the engine.',
  },
  'openai:responses:text-formats': {
    source: structured,
    behavior:
      '`text.format` constrains the output to JSON or a schema. The schema is not nested in `json_schema`.',
  },
  'openai:responses:engine-errors': {
    source: errors,
    behavior: 'Schema errors of the engine name the field of the Responses API.',
  },
  'openai:responses:tools': {
    source: functions,
    behavior:
      'Calls are items with an item id and a `call_id`. Functions are not nested in a `function` object.',
  },
  'openai:responses:tool-choice': {
    source: functions,
    behavior: '`tool_choice` forbids, allows or requires calls. A tool that is not a function gets a 400.',
  },
  'openai:responses:hosted-tools': {
    source: response,
    behavior: 'Tools that OpenAI hosts are ignored. A custom tool or an unknown type gets a 400.',
  },
  'openai:responses:custom-tools': {
    source: response,
    behavior: 'A custom tool gets one text, which matches its grammar. Its calls have an item type.',
  },
  'openai:responses:namespaces': {
    source: response,
    behavior: 'The functions of a namespace are called with their name and the namespace.',
  },
  'openai:responses:images': {
    source: response,
    behavior: 'A text replaces each image in the input and in results, because the model sees none.',
  },
  'openai:responses:warm-up': {
    source: 'Codex, which sends this before the first message',
    behavior: 'A request with `generate: false` evaluates its prompt, and gets an empty response.',
  },
  'openai:responses:incomplete-call': {
    source: responseObject,
    behavior: 'A call that the model leaves incomplete has the status `incomplete`, and so has the response.',
  },
  'openai:responses:reasoning': {
    source: responseObject,
    behavior: 'Reasoning is the first item, with a summary and `encrypted_content` on request.',
  },
  'openai:responses:reasoning-effort': {
    source: response,
    behavior: '`reasoning.effort: none` disables reasoning. Other values enable it and reach the template.',
  },
  'openai:responses:reasoning-sent-back': {
    source: response,
    behavior:
      'Reasoning of earlier turns, as content, summary or `encrypted_content`, reaches the template. Encrypted content of other servers does not.',
  },
  'openai:responses:empty-answer': {
    source: responseObject,
    behavior: 'An answer without text has an empty message.',
  },
  'openai:responses:logprobs': {
    source: responseObject,
    behavior: 'Each token of a text has its logprob if `include` or `top_logprobs` asks for it.',
  },
  'openai:responses:stream': {
    source: responseStream,
    behavior:
      'A stream has named and numbered events. Its last event has the same response as without `stream`.',
  },
  'openai:responses:stream-items': {
    source: responseStream,
    behavior: 'Each output item is done before the next one is added, in order, for every type of item.',
  },
  'openai:responses:stream-fails': {
    source: responseStream,
    behavior: 'A failure in a stream sends the event `response.failed` with a code and a message.',
  },
  'openai:responses:errors-before-a-stream': {
    source: errors,
    behavior: 'A failure before the first token is an HTTP error, also if the request asks for a stream.',
  },
  'openai:responses:client-disconnects': {
    source: response,
    behavior: 'A client that disconnects ends the generation, with and without `stream`.',
  },
  'openai:responses:stored': {
    source: response,
    behavior: 'A stored response is the one that was sent, with its input items, until it is deleted.',
  },
  'openai:responses:previous': {
    source: response,
    behavior:
      '`previous_response_id` continues the input and output of earlier responses, without instructions.',
  },
  'openai:responses:item-references': {
    source: response,
    behavior: 'An `item_reference` stands for a stored item, until its response is deleted.',
  },
  'openai:responses:failed-is-kept': {
    source: response,
    behavior: 'A response that fails in its stream is stored as failed, and cannot be continued.',
  },
  'openai:conversations:whole': {
    source: 'OpenAI API reference, Conversations',
    behavior: 'A conversation collects the items of its responses and those that clients add.',
  },
  'openai:responses:unsupported-state': {
    source: response,
    behavior: 'A stored prompt and a response in the background are a 400 that names the field.',
  },
  'openai:responses:input-tokens': {
    source: response,
    behavior: '`POST /v1/responses/input_tokens` counts the input tokens of a request without generating.',
  },
  'openai:responses:bad-input': {
    source: errors,
    behavior: 'An invalid field gets a 400 that names it, in plain words.',
  },
  'openai:choices:chat': {
    source: create,
    behavior: 'With `n`, each choice has an index and a separate seed. The prompt counts once.',
  },
  'openai:choices:chat-stream': {
    source: streaming,
    behavior: 'The choices of a stream run at the same time, and appear in the order of their indices.',
  },
  'openai:choices:cancelled': {
    source: streaming,
    behavior: 'A client that leaves ends all choices.',
  },
  'openai:choices:completions': {
    source: text,
    behavior: 'Each prompt has `n` choices, prompt by prompt, whole and in a stream.',
  },
  'openai:choices:best-of': {
    source: text,
    behavior: 'Of `best_of` answers, those with the highest mean logprob are returned. The usage counts all.',
  },
  'openai:choices:bad-input': {
    source: errors,
    behavior: 'A wrong number of choices gets a 400 that names the field.',
  },
  'openai:completions:mixed-prompts': {
    source: llamaServer,
    behavior: 'A prompt can consist of texts and token ids.',
  },
  'openai:unsupported-apis': {
    source: errors,
    behavior: 'Images, audio and moderations get a 404 in the error envelope that names the path.',
  },
  'openai:rerank:shape': {
    source: rerank,
    behavior: 'Documents are ranked by their score, the best first, with their texts if asked for.',
  },
  'openai:rerank:texts': {
    source: llamaServer,
    behavior: 'With `texts` instead of `documents`, the response is a list of scores.',
  },
  'openai:rerank:bad-input': {
    source: rerank,
    behavior: 'An invalid field gets a 400 that names it.',
  },
  'openai:tokens:round-trip': {
    source: llamaServer,
    behavior: 'A text becomes token ids, and token ids become the text again.',
  },
  'openai:tokens:bad-input': {
    source: llamaServer,
    behavior: 'Token ids that are none get a 400, and so does a request for the text of each token.',
  },
  'openai:prompts:apply-template': {
    source: llamaServer,
    behavior: 'The messages are returned as the prompt that the template of the model renders.',
  },
  'openai:prompts:input-tokens': {
    source: llamaServer,
    behavior: 'The tokens of a chat are counted as its answer counts them.',
  },
  'openai:embeddings:pooling': {
    source: llamaServer,
    behavior: 'Another pooling than that of the model gets a 400.',
  },
  'openai:models:delete': {
    source: models,
    behavior: 'A caller with the scope `models` can delete a model. After that, it is unknown.',
  },
  'openai:models:delete-without-the-scope': {
    source: models,
    behavior: 'A caller without the scope `models` cannot delete a model.',
  },
  'openai:embeddings:shape': {
    source: vectors,
    behavior: 'Each text gets a vector of length 1, in order. The usage counts the tokens of all texts.',
  },
  'openai:embeddings:input-forms': {
    source: vectors,
    behavior: 'The input may be text, token ids, or a list of these.',
  },
  'openai:embeddings:base64': {
    source: vectors,
    behavior: 'A base64 vector holds 32-bit floats, least significant byte first.',
  },
  'openai:embeddings:dimensions': {
    source: vectors,
    behavior:
      '`dimensions` shortens the vectors and normalizes them to length 1. More than the model has get a 400.',
  },
  'openai:embeddings:errors': {
    source: errors,
    behavior: 'An unknown model gets a 404. A model without embeddings and a too long text get a 400.',
  },
  'openai:embeddings:bad-input': {
    source: vectors,
    behavior: 'An invalid field gets a 400 that names it, and nothing reaches the model.',
  },
  'openai:embeddings:many': {
    source: vectors,
    behavior: 'A request may have 2,048 inputs.',
  },
  'openai:models:list': {
    source: models,
    behavior: 'The list has every model in the shape of the model object.',
  },
  'openai:models:retrieve': {
    source: models,
    behavior: 'A model is found by its id, also one with a slash, percent-encoded or not.',
  },
  'openai:models:retrieve-unknown': {
    source: models,
    behavior: 'An unknown id, with its slash encoded or not, gets a 404 with the code `model_not_found`.',
  },
  'openai:transport:upload-roundtrip': {
    source: files,
    behavior: 'A file is uploaded, listed, read with identical bytes and deleted. Then it gets a 404.',
  },
  'openai:transport:upload-client-disconnects': {
    source: files,
    behavior: 'A client that disconnects during an upload leaves no visible file.',
  },
  'openai:transport:upload-too-large': {
    source: files,
    behavior: 'A file over `batches.maxBatchBytes` gets a 413, and no file is visible.',
  },
  'openai:transport:upload-incomplete-form': {
    source: files,
    behavior: 'A form without its end gets a 400, and no file is visible.',
  },
  'openai:transport:upload-parsed-body': {
    source: files,
    behavior: 'An upload that an earlier body parser has read gets a 400 with instructions.',
  },
  'openai:transport:upload-unknown-ids': {
    source: files,
    behavior: 'Unknown ids, also with SQL or path characters, get a 404 on every route of a file.',
  },
  'openai:files:form-fields': {
    source: files,
    behavior: 'The fields of the form may come in any order. An invalid one gets a 400 that names it.',
  },
  'openai:files:not-a-form': {
    source: files,
    behavior: 'A body that is not a form gets a 400.',
  },
  'openai:files:names': {
    source: files,
    behavior: 'File names cannot change the headers of a download.',
  },
  'openai:files:pages': {
    source: files,
    behavior: 'Files are listed in either order, in pages, and by purpose.',
  },
  'openai:files:space': {
    source: files,
    behavior: 'A tenant over `batches.maxBytesPerTenant` gets a 429 until it deletes a file.',
  },
  'openai:files:empty': {
    source: files,
    behavior: 'An empty file can be stored and read.',
  },
  'openai:transport:batch-lifecycle': {
    source: batch,
    behavior: 'A batch with an invalid request is completed, with an output file and an error file.',
  },
  'openai:transport:batch-cancel-without-body': {
    source: batch,
    behavior: 'Canceling needs no body. Finished requests stay in the output file.',
  },
  'openai:transport:batch-unknown-ids': {
    source: batch,
    behavior: 'Unknown ids, also with SQL or path characters, get a 404.',
  },
  'openai:batches:invalid-files': {
    source: batch,
    behavior: 'A batch whose file is invalid fails, and its errors name the lines.',
  },
  'openai:batches:files-with-odd-lines': {
    source: batch,
    behavior: 'Blank lines, a byte order mark and a missing last line break are accepted.',
  },
  'openai:batches:failed-requests': {
    source: batch,
    behavior: 'Requests that fail are in the error file, with the status of a direct call.',
  },
  'openai:batches:endpoints': {
    source: batch,
    behavior: 'Batches for completions, embeddings and responses run.',
  },
  'openai:batches:invalid-requests': {
    source: batch,
    behavior: 'An invalid field gets a 400 that names it, and no batch is created.',
  },
  'openai:batches:result-file-as-input': {
    source: batch,
    behavior: 'The result file of a batch cannot be the input of another one.',
  },
  'openai:batches:too-many-requests': {
    source: batch,
    behavior: 'A batch whose file has more requests than `batches.maxRequests` fails.',
  },
  'openai:batches:owners': {
    source: batch,
    behavior: 'Batches and files of another tenant get a 404, and are not listed.',
  },
  'openai:batches:pages': {
    source: batch,
    behavior: 'Batches are listed newest first, in pages.',
  },
  'openai:batches:interactive-calls': {
    source: batch,
    behavior: 'A call is answered while a batch runs.',
  },
  'anthropic:auth:any-key-is-accepted': {
    source: anthropicOverview,
    behavior: 'With `auth: anonymous`, any key is accepted, as `x-api-key`, as a bearer token, or both.',
  },
  'anthropic:auth:no-key-is-needed': {
    source: anthropicOverview,
    behavior: 'With `auth: anonymous`, a call without a key is answered.',
  },
  'anthropic:transport:any-version': {
    source: anthropicVersions,
    behavior: 'The answer does not depend on `anthropic-version`.',
  },
  'anthropic:transport:any-beta': {
    source: anthropicBetas,
    behavior: 'Unknown betas, in the header or as `?beta=true`, do not change the answer.',
  },
  'anthropic:transport:request-id': {
    source: anthropicErrors,
    behavior: 'Every response has a unique `request-id`. The body of an error repeats it.',
  },
  'anthropic:transport:accept-is-ignored': {
    source: anthropicStreaming,
    behavior: 'Only `stream` determines whether the response is a stream. `accept` is ignored.',
  },
  'anthropic:transport:browsers': {
    source: anthropicOverview,
    behavior: 'The response to a CORS preflight allows the headers that clients send.',
  },
  'anthropic:transport:probes': {
    source: claudeCode,
    behavior:
      'The path that Claude Code probes gets a 404 without a body and without an authentication challenge.',
  },
  'anthropic:errors:body-is-not-json': {
    source: anthropicErrors,
    behavior: 'A body that is not JSON gets a 400 in the error envelope.',
  },
  'anthropic:errors:too-large-body': {
    source: anthropicErrors,
    behavior: 'A body over the limit gets a 413 of the type `request_too_large`.',
  },
  'anthropic:errors:wrong-method': {
    source: anthropicErrors,
    behavior: 'A known path with another method gets a 405 in the error envelope, with or without a version.',
  },
  'anthropic:errors:unknown-path': {
    source: anthropicErrors,
    behavior: 'An unknown path gets a 404 in the error envelope of the API that the client uses.',
  },
  'anthropic:errors:engine-failure': {
    source: anthropicErrors,
    behavior: 'An internal failure causes a 500 of the type `api_error` without a stack trace or file path.',
  },
  'anthropic:errors:overloaded': {
    source: anthropicErrors,
    behavior: 'An overloaded server responds with 529, `overloaded_error` and `retry-after`.',
  },
  'anthropic:limits:headers-on-every-response': {
    source: anthropicRateLimits,
    behavior:
      'Every response of a model, streamed or not, has `anthropic-ratelimit-*` headers with the reset time.',
  },
  'anthropic:limits:no-headers-without-limits': {
    source: anthropicRateLimits,
    behavior: 'A caller without limits gets no limit headers.',
  },
  'anthropic:limits:over-the-limit': {
    source: anthropicRateLimits,
    behavior:
      'A request over a limit gets a 429. `retry-after` and `retry-after-ms` are the time until the limit has room.',
  },
  'anthropic:limits:too-many-at-once': {
    source: anthropicRateLimits,
    behavior: 'A request over the limit of concurrent requests gets a 429 with `retry-after` of one second.',
  },
  'anthropic:limits:counting-apart': {
    source: anthropicRateLimits,
    behavior: 'Token counting has a separate limit of requests per minute, equal to that of messages.',
  },
  'anthropic:limits:spending-limit': {
    source: anthropicRateLimits,
    behavior:
      'A key at its spending limit gets a 400 with the reset time. It can still count tokens and list models.',
  },
  'anthropic:limits:queue-is-full': {
    source: anthropicErrors,
    behavior: 'A request to a full queue gets a 529 with `retry-after`, with and without `stream`.',
  },
  'anthropic:messages:whole-shape': {
    source: anthropicCreate,
    behavior: 'A non-streamed response has every field of the message object.',
  },
  'anthropic:messages:missing-fields': {
    source: anthropicCreate,
    behavior:
      'A request without `model`, `max_tokens` or `messages` gets a 400 such as `model: Field required`.',
  },
  'anthropic:messages:unknown-model': {
    source: anthropicErrors,
    behavior: 'An unknown model gets a 404 with the message `model: <id>`, with and without `stream`.',
  },
  'anthropic:messages:empty-messages': {
    source: anthropicCreate,
    behavior: 'An empty list of messages gets a 400.',
  },
  'anthropic:messages:text-blocks': {
    source: anthropicCreate,
    behavior: 'Text blocks as content or system make the same prompt as plain text.',
  },
  'anthropic:messages:max-tokens': {
    source: anthropicStops,
    behavior: '`max_tokens` ends the answer after exactly that many tokens, with stop reason `max_tokens`.',
  },
  'anthropic:messages:stop-sequence': {
    source: anthropicStops,
    behavior:
      'A stop sequence ends the answer with stop reason `stop_sequence`. The response names the sequence.',
  },
  'anthropic:messages:context-is-full': {
    source: anthropicStops,
    behavior: 'An answer that fills the context has the stop reason `model_context_window_exceeded`.',
  },
  'anthropic:messages:empty-answer': {
    source: anthropicStops,
    behavior: 'An empty answer has an empty list of blocks and the stop reason `end_turn`.',
  },
  'anthropic:messages:sampling-ranges': {
    source: anthropicCreate,
    behavior: '`temperature` and `top_p` are from 0 to 1. Other values get a 400 that names the bound.',
  },
  'anthropic:messages:turns-are-merged': {
    source: anthropicTurns,
    behavior: 'Consecutive turns of one role are merged into one turn.',
  },
  'anthropic:messages:prefill': {
    source: anthropicTurns,
    behavior: 'A trailing assistant turn is continued. An empty one is ignored.',
  },
  'anthropic:messages:system-among-messages': {
    source: anthropicTurns,
    behavior: 'A message of the role `system` is accepted at every position, and stays there.',
  },
  'anthropic:messages:unknown-role': {
    source: anthropicCreate,
    behavior: 'A message of an unknown role gets a 400 that names its position.',
  },
  'anthropic:messages:unknown-block': {
    source: anthropicCreate,
    behavior: 'A block of an unknown type gets a 400 with the text `Input tag` after its position.',
  },
  'anthropic:messages:image-on-text-model': {
    source: anthropicCreate,
    behavior: 'An image for a text-only model gets a 400 that names the block.',
  },
  'anthropic:messages:documents': {
    source: anthropicCreate,
    behavior:
      'Text documents and search results become part of the prompt. A document in a file gets a 400 that names it.',
  },
  'anthropic:messages:ignored-fields': {
    source: claudeCode,
    behavior: 'Fields about accounts and context editing, and unknown fields, are accepted.',
  },
  'anthropic:messages:billing-block': {
    source: claudeCode,
    behavior: 'The billing block that Claude Code adds to `system` is not part of the prompt.',
  },
  'anthropic:messages:mcp-servers-are-rejected': {
    source: anthropicCreate,
    behavior: 'MCP servers get a 400 that names the field. An empty list is accepted.',
  },
  'anthropic:messages:threads-are-rejected': {
    source: '@anthropic-ai/sdk 1.12, lib/internal/threads/ThreadState',
    behavior:
      'A server-side thread gets a 400 with the error code that makes clients send the whole conversation.',
  },
  'anthropic:messages:output-format': {
    source: anthropicFormats,
    behavior:
      'A JSON Schema reaches the model, as `output_config.format` or as the older `output_format`. `effort` has no effect.',
  },
  'anthropic:messages:engine-errors': {
    source: anthropicFormats,
    behavior: 'An unsupported schema, of the output or of a tool, gets a 400 that names the field.',
  },
  'anthropic:tools:whole': {
    source: anthropicTools,
    behavior:
      'A call is a `tool_use` block with an id and an object as input. The stop reason is `tool_use`.',
  },
  'anthropic:tools:streamed': {
    source: anthropicStreaming,
    behavior: 'The JSON pieces of a streamed call join to the input of the same call without `stream`.',
  },
  'anthropic:tools:no-arguments': {
    source: anthropicTools,
    behavior: 'A call without arguments has an empty object as input, with and without `stream`.',
  },
  'anthropic:tools:long-arguments': {
    source: anthropicStreaming,
    behavior: 'Four kilobytes of quotes, line breaks and emoji in an argument arrive unchanged.',
  },
  'anthropic:tools:blocks-in-order': {
    source: anthropicStreaming,
    behavior:
      'Reasoning, text and two calls are blocks numbered from 0. Each block is closed before the next one opens.',
  },
  'anthropic:tools:incomplete-call': {
    source: anthropicStops,
    behavior:
      'A non-streamed response omits a call that is cut by the token limit. The stop reason is `max_tokens`.',
  },
  'anthropic:tools:round-trip': {
    source: anthropicTools,
    behavior:
      'Calls and their results, including errors, reach the model. Results come before the text of the same turn.',
  },
  'anthropic:tools:result-contents': {
    source: anthropicTools,
    behavior: 'A result may have no content, an empty text, a text, or blocks, including an image.',
  },
  'anthropic:tools:history-without-tools': {
    source: anthropicTools,
    behavior: 'A conversation with calls can continue without tools.',
  },
  'anthropic:tools:choice': {
    source: anthropicToolChoice,
    behavior: 'A `tool_choice` of any tool, one tool or none, and the limit to one call, reach the model.',
  },
  'anthropic:tools:choice-of-missing-tool': {
    source: anthropicToolChoice,
    behavior:
      'A `tool_choice` of a missing tool gets a 400 that names it. A `tool_choice` without tools also gets a 400.',
  },
  'anthropic:tools:definitions': {
    source: anthropicTools,
    behavior:
      'A duplicate tool name, a name with a space, and a schema without the type `object` each get a 400.',
  },
  'anthropic:tools:known-schemas': {
    source: anthropicTools,
    behavior:
      'Tools that the API defines and the client runs, such as bash, reach the model with their schemas.',
  },
  'anthropic:tools:hosted-are-rejected': {
    source: anthropicTools,
    behavior: 'Hosted and unknown tools get a 400 that names the field.',
  },
  'anthropic:tools:pairs': {
    source: anthropicTools,
    behavior: 'A call without a result, or a result without a call, gets a 400 that names its id.',
  },
  'anthropic:thinking:requested': {
    source: anthropicThinking,
    behavior:
      'Requested thinking is the first block, with a signature. In a stream the signature comes last.',
  },
  'anthropic:thinking:not-requested': {
    source: anthropicThinking,
    behavior: 'Thinking that is disabled or not requested has no block, but its tokens are counted.',
  },
  'anthropic:thinking:omitted': {
    source: anthropicThinking,
    behavior: 'With `display: omitted`, thinking is an empty block with a signature.',
  },
  'anthropic:thinking:sent-back': {
    source: anthropicThinking,
    behavior: 'Thinking of earlier turns is accepted with any signature. Redacted thinking is dropped.',
  },
  'anthropic:thinking:budget': {
    source: anthropicThinking,
    behavior: 'A thinking budget that is not below `max_tokens` gets a 400.',
  },
  'anthropic:cache:accounting': {
    source: anthropicCaching,
    behavior:
      'The first request writes the prefix up to a breakpoint, and the next one reads it. Cache reads, cache writes and the other tokens add up to the counted prompt.',
  },
  'anthropic:cache:changes': {
    source: anthropicCaching,
    behavior:
      'Another tool description invalidates the whole prefix. Another question keeps tools and system.',
  },
  'anthropic:cache:other-choice': {
    source: anthropicCaching,
    behavior: 'Another `tool_choice` does not invalidate cached tools and system.',
  },
  'anthropic:cache:tenants': {
    source: anthropicCaching,
    behavior: 'Tenants have separate caches. Callers of one tenant share a cache.',
  },
  'anthropic:cache:without-breakpoint': {
    source: anthropicCaching,
    behavior:
      'Without a breakpoint there are no cache reads or writes. The whole prompt counts as `input_tokens`.',
  },
  'anthropic:cache:billing-block': {
    source: claudeCode,
    behavior: 'A billing block that changes with each request does not invalidate the prefix after it.',
  },
  'anthropic:cache:growing-conversation': {
    source: anthropicCaching,
    behavior: 'A conversation with its breakpoint on the last block reads more tokens with each turn.',
  },
  'anthropic:cache:streams': {
    source: anthropicStreaming,
    behavior: '`message_start` and `message_delta` report the same cache usage as a non-streamed response.',
  },
  'anthropic:cache:pre-warm': {
    source: anthropicCaching,
    behavior:
      '`max_tokens: 0` only caches the prompt. The response has no content, and the next request reads the cache.',
  },
  'anthropic:cache:pre-warm-rejected': {
    source: anthropicCaching,
    behavior:
      '`max_tokens: 0` with a stream, thinking, a format or a forced tool gets a 400 that names `max_tokens`.',
  },
  'anthropic:cache:markers': {
    source: anthropicCaching,
    behavior:
      '`cache_control` is accepted on tools, system and message blocks, also within results, for five minutes or an hour. Null means none.',
  },
  'anthropic:cache:order': {
    source: anthropicCaching,
    behavior: 'A prefix consists of tools, then system, then messages, whatever their order in the body.',
  },
  'anthropic:cache:at-most-four': {
    source: anthropicCaching,
    behavior:
      'Five breakpoints, including the request-level one, get a 400 with their number. Four are accepted.',
  },
  'anthropic:cache:unmarkable-blocks': {
    source: anthropicCaching,
    behavior:
      'A breakpoint on an empty text, on thinking or on redacted thinking gets a 400 that names the block.',
  },
  'anthropic:cache:types': {
    source: anthropicCaching,
    behavior: 'A `cache_control` with another type or `ttl` gets a 400 that names the field.',
  },
  'anthropic:cache:longer-first': {
    source: anthropicCaching,
    behavior: 'A breakpoint for an hour after one for five minutes, in prompt order, gets a 400.',
  },
  'anthropic:cache:mixed-lifetimes': {
    source: anthropicCaching,
    behavior: 'Cache writes for an hour and cache writes for five minutes are counted separately.',
  },
  'anthropic:cache:automatic': {
    source: anthropicCaching,
    behavior:
      'The request-level breakpoint applies to the last block that can have one. Without such a block nothing is cached.',
  },
  'anthropic:cache:automatic-beside-others': {
    source: anthropicCaching,
    behavior:
      'The request-level breakpoint may repeat that of the last block. Another `ttl` there, or four other breakpoints, get a 400.',
  },
  'anthropic:cache:lifetime': {
    source: anthropicCaching,
    behavior: 'Cached prefixes expire five minutes or an hour after their last use.',
  },
  'anthropic:cache:at-breakpoints': {
    source: anthropicCaching,
    behavior: 'Prompts are cached only up to breakpoints, and nothing after the last breakpoint is read.',
  },
  'anthropic:cache:far-back': {
    source: anthropicCaching,
    behavior: 'A cached prefix is found even if it ends more than 20 blocks before a breakpoint.',
  },
  'anthropic:cache:exact': {
    source: anthropicCaching,
    behavior:
      'Only an identical prefix is read, with tools and keys in the same order. Plain text equals one text block.',
  },
  'anthropic:cache:invalidation': {
    source: anthropicCaching,
    behavior:
      'Other tools or another model invalidate the whole prefix. Another system keeps the tools. Other messages keep tools and system.',
  },
  'anthropic:cache:same-answer': {
    source: anthropicCaching,
    behavior: 'The answer is the same without a breakpoint, with a cache write and with a cache read.',
  },
  'anthropic:cache:no-waiting': {
    source: anthropicCaching,
    behavior: 'A request does not wait for another request that is about to write the same prefix.',
  },
  'anthropic:messages:context-length': {
    source: anthropicErrors,
    behavior: 'A prompt longer than the context gets a 400 with the message that agents match on.',
  },
  'anthropic:messages:stream-order': {
    source: anthropicStreaming,
    behavior:
      'A stream of text is `message_start`, one block with its deltas, `message_delta` and `message_stop`.',
  },
  'anthropic:messages:stream-frames': {
    source: anthropicStreaming,
    behavior: 'Every frame has the name of its event type and ends with a blank line. There is no `[DONE]`.',
  },
  'anthropic:messages:stream-usage': {
    source: anthropicStreaming,
    behavior:
      'The first event has the input usage and no output. The last usage is cumulative and repeats the input.',
  },
  'anthropic:messages:stream-joins-to-whole': {
    source: anthropicStreaming,
    behavior: 'The pieces of a stream join to the non-streamed answer, also with emoji and Japanese.',
  },
  'anthropic:messages:stream-error': {
    source: anthropicErrors,
    behavior: 'A failure in a stream sends a last event `error`, and the server serves the next call.',
  },
  'anthropic:messages:stream-of-invalid-request': {
    source: anthropicStreaming,
    behavior: 'An invalid request with `stream: true` gets a 400, not a stream.',
  },
  'anthropic:messages:stream-client-disconnects': {
    source: anthropicStreaming,
    behavior: 'A client that disconnects ends the generation.',
  },
  'anthropic:count:prompt': {
    source: anthropicCount,
    behavior: 'The count equals the input tokens of the same call, and needs no `max_tokens`.',
  },
  'anthropic:count:invalid': {
    source: anthropicCount,
    behavior: 'Requests that the messages route rejects are also rejected by token counting.',
  },
  'anthropic:count:unknown-model': {
    source: anthropicCount,
    behavior: 'Token counting for an unknown model gets a 404.',
  },
  'anthropic:models:list': {
    source: anthropicModels,
    behavior: "The list has the shape of a page, with models in Anthropic's format.",
  },
  'anthropic:models:list-by-header': {
    source: anthropicModels,
    behavior:
      "The `anthropic-version` header selects Anthropic's model list. Without it the same path returns OpenAI's list.",
  },
  'anthropic:models:pages': {
    source: anthropicModels,
    behavior:
      '`limit`, `after_id` and `before_id` choose a page, and `lifecycle[]` the models. Values out of range get a 400.',
  },
  'anthropic:models:retrieve': {
    source: anthropicModels,
    behavior: 'A model is found by its name, also one with a slash, with or without its tag.',
  },
  'anthropic:models:retrieve-unknown': {
    source: anthropicModels,
    behavior: 'An unknown model gets a 404 with the message `model: <id>`, including slashes.',
  },
  'anthropic:transport:batch-lifecycle': {
    source: anthropicBatches,
    behavior: 'A message batch is created, polled to its end, read and deleted. Then it gets a 404.',
  },
  'anthropic:transport:batch-cancel-without-body': {
    source: anthropicBatches,
    behavior: 'Canceling needs no body and no content type. Canceling again changes nothing.',
  },
  'anthropic:transport:batch-results-are-lines': {
    source: anthropicBatches,
    behavior: 'The results are streamed as JSON lines without a blank line, each item once.',
  },
  'anthropic:transport:batch-results-that-fail': {
    source: anthropicBatches,
    behavior:
      'Results that cannot be read to their end break the connection, so that no client takes them for complete.',
  },
  'anthropic:transport:batch-parsed-body': {
    source: anthropicBatches,
    behavior: 'A message batch can be created from a body that an earlier body parser has read.',
  },
  'anthropic:transport:batch-large-body': {
    source: anthropicBatches,
    behavior: 'The body of a message batch may be larger than the limit of other bodies.',
  },
  'anthropic:transport:batch-too-large-body': {
    source: anthropicBatches,
    behavior: 'A body over `batches.maxBatchBytes` gets a 413, and no batch is created.',
  },
  'anthropic:transport:batch-client-disconnects': {
    source: anthropicBatches,
    behavior: 'A client that disconnects before its body is complete creates no batch.',
  },
  'anthropic:transport:batch-unknown-ids': {
    source: anthropicBatches,
    behavior: 'Unknown ids, also with SQL or path characters, get a 404 on every route of a batch.',
  },
  'anthropic:batches:counts': {
    source: anthropicBatches,
    behavior: 'The counts of an ended batch are those of its results, and errors are nested twice.',
  },
  'anthropic:batches:errors-of-a-direct-call': {
    source: anthropicBatches,
    behavior: 'An invalid item ends errored, with the error of the same direct call.',
  },
  'anthropic:batches:stream-is-rejected': {
    source: anthropicBatches,
    behavior: 'An item with `stream: true` ends errored, and the other items succeed.',
  },
  'anthropic:batches:delete-and-results-before-the-end': {
    source: anthropicBatches,
    behavior: 'Deleting a batch and reading its results before its end get a 400.',
  },
  'anthropic:batches:owners': {
    source: anthropicBatches,
    behavior: 'A batch of another tenant gets a 404 on every route, and is not listed.',
  },
  'anthropic:batches:pages': {
    source: anthropicBatches,
    behavior: 'Batches are listed newest first, in pages in both directions.',
  },
  'anthropic:batches:restart': {
    source: anthropicBatches,
    behavior: 'A batch continues after a restart of the server, and each item has one result.',
  },
  'anthropic:batches:interactive-calls': {
    source: anthropicBatches,
    behavior: 'A call is answered while a batch runs.',
  },
  'anthropic:batches:limits': {
    source: anthropicBatches,
    behavior: 'A batch beyond `batches.maxQueuedRequests` gets a 429 with `retry-after`.',
  },
  'anthropic:batches:without-database': {
    source: anthropicBatches,
    behavior: 'Without a database, the routes of batches get a 400 that names the option.',
  },
  'ollama:home:text': {
    source: ollamaRoutes,
    behavior: '`GET /` returns the text `Ollama is running`, and `HEAD /` the same headers without the text.',
  },
  'ollama:home:wrong-method': {
    source: ollamaRoutes,
    behavior: 'Another method on `/` gets a 405 with the allowed methods.',
  },
  'ollama:version:shape': {
    source: ollamaVersion,
    behavior: 'The version is three numbers, which clients compare.',
  },
  'ollama:transport:content-type-is-ignored': {
    source: ollamaRoutes,
    behavior: 'A body is parsed as JSON, whatever its `content-type`.',
  },
  'ollama:transport:accept-is-ignored': {
    source: ollamaStreaming,
    behavior: 'Only `stream` determines whether the response is a stream. `accept` is ignored.',
  },
  'ollama:transport:any-key-is-accepted': {
    source: ollamaAuthentication,
    behavior: 'With `auth: anonymous`, any key or no key is accepted.',
  },
  'ollama:transport:request-id': {
    source: ollamaRoutes,
    behavior: 'Every response of a route, including errors, has a unique `x-request-id`.',
  },
  'ollama:transport:browsers': {
    source: ollamaFaq,
    behavior: 'The response to a CORS preflight allows the headers that clients send.',
  },
  'ollama:transport:head': {
    source: ollamaRoutes,
    behavior: 'GET routes respond to HEAD without a body.',
  },
  'ollama:errors:unknown-path': {
    source: ollamaErrors,
    behavior: "An unknown path under `/api` gets a 404 with the text of Ollama's router.",
  },
  'ollama:errors:wrong-method': {
    source: ollamaRoutes,
    behavior: 'A known path with another method gets a 405 with the allowed methods.',
  },
  'ollama:errors:body-is-not-json': {
    source: ollamaErrors,
    behavior: 'A body that is not JSON, or an empty body, gets a 400.',
  },
  'ollama:errors:too-large-body': {
    source: ollamaErrors,
    behavior: 'A body over the limit gets a 413 with a text as its `error`.',
  },
  'ollama:errors:engine-failure': {
    source: ollamaErrors,
    behavior: 'An internal failure causes a 500 without a stack trace or file path.',
  },
  'ollama:errors:overloaded': {
    source: ollamaErrors,
    behavior: 'An overloaded server responds with 503 and `retry-after` in whole seconds.',
  },
  'ollama:limits:headers-on-every-response': {
    source: ollamaErrors,
    behavior: 'Every response of a model, streamed or not, has `x-ratelimit-*` headers with durations.',
  },
  'ollama:limits:no-headers-without-limits': {
    source: ollamaErrors,
    behavior: 'A caller without limits gets no limit headers.',
  },
  'ollama:limits:over-the-limit': {
    source: ollamaErrors,
    behavior:
      'A request over a limit gets a 429. `retry-after` and `retry-after-ms` are the time until the limit has room.',
  },
  'ollama:limits:too-many-at-once': {
    source: ollamaErrors,
    behavior: 'A request over the limit of concurrent requests gets a 429 with `retry-after` of one second.',
  },
  'ollama:limits:spending-limit': {
    source: ollamaErrors,
    behavior: 'A key at its spending limit gets a 429 with a text. It can still list and show models.',
  },
  'ollama:limits:queue-is-full': {
    source: ollamaErrors,
    behavior: 'A request to a full queue gets a 503 with `retry-after`, with and without `stream`.',
  },
  'ollama:errors:before-the-first-line': {
    source: ollamaErrors,
    behavior: 'A failure before the first line gets a status code, also if the request asks for a stream.',
  },
  'ollama:errors:in-a-stream': {
    source: ollamaErrors,
    behavior: 'A failure in a stream sends a last line with `error`, and the server serves the next call.',
  },
  'ollama:errors:context-length': {
    source: ollamaErrors,
    behavior: 'A prompt longer than the context gets a 400 that names both lengths.',
  },
  'ollama:body:null': {
    source: ollamaRoutes,
    behavior: 'A null body is treated as an empty object. The error names the missing field.',
  },
  'ollama:body:null-means-absent': {
    source: ollamaTypes,
    behavior: 'Every field may be null, which means the same as absent.',
  },
  'ollama:body:unknown-fields': {
    source: ollamaTypes,
    behavior: 'Unknown fields of a body or a message are ignored.',
  },
  'ollama:body:names-in-any-case': {
    source: ollamaTypes,
    behavior: 'Field names may be in upper or lower case, also in messages.',
  },
  'ollama:body:duplicate-names': {
    source: ollamaTypes,
    behavior: 'The last of two fields with the same name counts.',
  },
  'ollama:body:wrong-type': {
    source: ollamaErrors,
    behavior: 'A field of a wrong type gets a 400 that names it, in whatever case it was sent.',
  },
  'ollama:names:echoed': {
    source: ollamaRoutes,
    behavior: 'The response repeats the model name as the client wrote it.',
  },
  'ollama:names:any-case': {
    source: ollamaNames,
    behavior: 'Model names ignore case, and their default parts may be written out.',
  },
  'ollama:names:local': {
    source: ollamaRoutes,
    behavior: 'A name that ends with `:local` refers to a local model.',
  },
  'ollama:names:missing': {
    source: ollamaRoutes,
    behavior:
      "Without a model name, generate responds with 404, and chat and show respond with 400, each with Ollama's text.",
  },
  'ollama:names:invalid': {
    source: ollamaRoutes,
    behavior: 'An invalid model name gets a 400 `invalid model name`.',
  },
  'ollama:names:unknown': {
    source: ollamaRoutes,
    behavior: 'An unknown model gets a 404 that repeats its name. In show the name has a tag.',
  },
  'ollama:names:cloud': {
    source: ollamaRoutes,
    behavior: 'A cloud model gets a 403 and does not reach the engine.',
  },
  'ollama:generate:streams-by-default': {
    source: ollamaStreaming,
    behavior: 'The response is a stream of JSON lines, unless `stream` is false.',
  },
  'ollama:generate:lines': {
    source: ollamaGenerate,
    behavior: 'Each line has a piece of the answer, in the fields and order of the reference.',
  },
  'ollama:generate:last-line': {
    source: ollamaUsage,
    behavior: 'Only the last line has the done reason, the token counts, and the durations in nanoseconds.',
  },
  'ollama:generate:times-are-never-zero': {
    source: ollamaUsage,
    behavior: 'Durations are at least one nanosecond, since clients divide by them.',
  },
  'ollama:generate:whole': {
    source: ollamaGenerate,
    behavior: 'A non-streamed response is one object with the whole answer.',
  },
  'ollama:generate:stream-joins-to-whole': {
    source: ollamaStreaming,
    behavior: 'The pieces of a stream join to the non-streamed answer, also with emoji and Japanese.',
  },
  'ollama:generate:context-out': {
    source: ollamaGenerate,
    behavior:
      'The last line, or the non-streamed response, has the tokens of prompt and answer as `context`.',
  },
  'ollama:generate:context-in': {
    source: ollamaGenerate,
    behavior: 'A `context` comes before the prompt, and the template does not render it.',
  },
  'ollama:generate:raw': {
    source: ollamaGenerate,
    behavior: 'A raw prompt has no template. Its response has no `context` and no separated reasoning.',
  },
  'ollama:generate:raw-without-context': {
    source: ollamaRoutes,
    behavior: 'A raw prompt with `system` or `context` gets a 400.',
  },
  'ollama:generate:system': {
    source: ollamaGenerate,
    behavior: '`system` becomes the system message of the prompt. An empty one is ignored.',
  },
  'ollama:generate:thinking': {
    source: ollamaThinking,
    behavior: 'Reasoning is separate from the response text, with and without `stream`.',
  },
  'ollama:generate:load': {
    source: ollamaFaq,
    behavior:
      'Without a prompt the model is loaded. The response is one object without durations, even with `stream: true`.',
  },
  'ollama:generate:unload': {
    source: ollamaFaq,
    behavior:
      'Without a prompt, `keep_alive: 0` unloads the model. The response is one object, even with `stream: true`.',
  },
  'ollama:generate:render-only': {
    source: ollamaTypes,
    behavior: '`_debug_render_only` returns the rendered prompt without calling the model.',
  },
  'ollama:generate:unsupported': {
    source: ollamaGenerate,
    behavior: 'Images get a 400 that names the field. A template reaches the model.',
  },
  'ollama:generate:encoder': {
    source: ollamaRoutes,
    behavior: 'A pooling model gets a 400, because it does not support generate. It can be unloaded.',
  },
  'ollama:chat:streams-by-default': {
    source: ollamaStreaming,
    behavior: 'The response is a stream of JSON lines, unless `stream` is false.',
  },
  'ollama:chat:lines': {
    source: ollamaChat,
    behavior: 'Every line has a message with its role. The message of the last line is empty.',
  },
  'ollama:chat:last-line': {
    source: ollamaUsage,
    behavior:
      'Only the last line has the done reason, the token counts and the durations. It has no `context`.',
  },
  'ollama:chat:whole': {
    source: ollamaChat,
    behavior: 'A non-streamed response is one object with the whole answer.',
  },
  'ollama:chat:stream-is-live': {
    source: ollamaStreaming,
    behavior: 'The first lines arrive while the answer is being generated.',
  },
  'ollama:chat:client-disconnects': {
    source: ollamaStreaming,
    behavior: 'A client that disconnects ends the generation.',
  },
  'ollama:chat:load': {
    source: ollamaFaq,
    behavior:
      'Without messages the model is loaded. The response is one object without durations, even with `stream: true`.',
  },
  'ollama:chat:unload': {
    source: ollamaFaq,
    behavior: 'Without messages, `keep_alive: 0` unloads the model.',
  },
  'ollama:chat:roles': {
    source: ollamaTypes,
    behavior: 'Roles ignore case. Custom roles reach the model, and a missing role means `user`.',
  },
  'ollama:chat:developer-is-system': {
    source: ollamaTypes,
    behavior: 'A developer message is treated as a system message.',
  },
  'ollama:chat:system-among-messages': {
    source: ollamaChat,
    behavior: 'A system message stays at its position.',
  },
  'ollama:chat:prefill': {
    source: ollamaRoutes,
    behavior: 'A trailing assistant message is continued, and the answer contains only the continuation.',
  },
  'ollama:chat:earlier-reasoning': {
    source: ollamaThinking,
    behavior: 'Reasoning of earlier turns reaches the model together with their text.',
  },
  'ollama:chat:images-are-rejected': {
    source: ollamaChat,
    behavior: 'An image gets a 400 that names the message. An empty list is accepted.',
  },
  'ollama:chat:unsupported': {
    source: ollamaChat,
    behavior: 'An unsupported option that would change the answer gets a 400 that names it.',
  },
  'ollama:chat:encoder': {
    source: ollamaRoutes,
    behavior: 'A pooling model gets a 400, because it does not support chat. It can be unloaded.',
  },
  'ollama:chat:thinking': {
    source: ollamaThinking,
    behavior:
      'Reasoning comes first, with an empty content. Without reasoning the key `thinking` is omitted.',
  },
  'ollama:tools:reach-the-model': {
    source: ollamaChat,
    behavior: 'Tools reach the model with unchanged schemas. An empty list means no tools.',
  },
  'ollama:tools:streamed': {
    source: ollamaTools,
    behavior: 'Each call is one complete line with its arguments as an object. The done reason is `stop`.',
  },
  'ollama:tools:whole': {
    source: ollamaTools,
    behavior: 'A non-streamed response has all calls in order, with the text and the reasoning.',
  },
  'ollama:tools:incomplete-call': {
    source: ollamaTools,
    behavior: 'A call that is cut by the token limit is omitted, and the done reason is `length`.',
  },
  'ollama:tools:history': {
    source: ollamaTools,
    behavior: 'Earlier calls and results without ids reach the model. They are matched by name and order.',
  },
  'ollama:tools:round-trip': {
    source: ollamaTools,
    behavior: 'An answer with calls can be sent back unchanged, with results by id in any order.',
  },
  'ollama:tools:model-without-tools': {
    source: ollamaRoutes,
    behavior: 'Tools for a model without tool support get a 400.',
  },
  'ollama:format:forms': {
    source: ollamaStructured,
    behavior:
      'A format is `json` or a JSON Schema with its properties in order. Empty or null means no format.',
  },
  'ollama:format:invalid': {
    source: ollamaStructured,
    behavior: 'Any other format gets a 400 that lists the valid formats.',
  },
  'ollama:format:engine-errors': {
    source: ollamaStructured,
    behavior:
      'An unsupported schema, of the output or of a tool, gets a 400 that names it, with and without `stream`.',
  },
  'ollama:logprobs:streamed': {
    source: ollamaTypes,
    behavior:
      'The log probabilities of a text are in its line, also for reasoning, with the bytes of each token.',
  },
  'ollama:logprobs:whole': {
    source: ollamaTypes,
    behavior:
      'A non-streamed response has the log probabilities of all tokens, with the requested number of alternatives.',
  },
  'ollama:logprobs:only-if-requested': {
    source: ollamaTypes,
    behavior: '`top_logprobs` without `logprobs` has no effect.',
  },
  'ollama:generate:suffix': {
    source: ollamaGenerate,
    behavior: 'With a suffix the model fills the gap, without a template or a system message.',
  },
  'ollama:embed:shape': {
    source: ollamaEmbed,
    behavior: 'Embeddings are a list, even for a single text, with token count and durations.',
  },
  'ollama:embed:inputs': {
    source: ollamaEmbed,
    behavior: 'Each text of a list gets a vector, in order, including empty texts.',
  },
  'ollama:embed:no-input': {
    source: ollamaRoutes,
    behavior: 'Without an input the model is loaded or unloaded, and the list of embeddings is empty.',
  },
  'ollama:embed:options': {
    source: ollamaEmbed,
    behavior:
      'A too long text is truncated unless `truncate` is false. `dimensions` of zero or less are ignored.',
  },
  'ollama:embed:errors': {
    source: ollamaRoutes,
    behavior: "A missing model gets the error text of Ollama's embedding routes. A too long text gets a 400.",
  },
  'ollama:embeddings:shape': {
    source: ollamaEmbed,
    behavior: 'The older route `/api/embeddings` returns one vector for a prompt, and does not truncate.',
  },
  'ollama:think:by-default': {
    source: ollamaThinking,
    behavior: 'A model with reasoning uses it, unless `think` is false.',
  },
  'ollama:think:levels': {
    source: ollamaThinking,
    behavior: '`low`, `medium`, `high` and `max` enable reasoning, and reach the template.',
  },
  'ollama:think:invalid': {
    source: ollamaTypes,
    behavior: 'Any other `think` value gets a 400 that lists the valid values.',
  },
  'ollama:think:model-without-reasoning': {
    source: ollamaThinking,
    behavior: "`think` for a model without reasoning gets a 400 with Ollama's text, unless it is false.",
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
    behavior: 'The fraction of an integer option is cut off.',
  },
  'ollama:options:null': {
    source: ollamaTypes,
    behavior: 'A null option means the same as an absent one.',
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
    behavior:
      'An option of a wrong type gets a 400 that names it. A `stop` that is not a list is a wrong type.',
  },
  'ollama:options:num-predict': {
    source: ollamaOptions,
    behavior:
      '`num_predict` limits the tokens, and the done reason is then `length`. A negative value means no limit.',
  },
  'ollama:options:num-predict-zero': {
    source: ollamaOptions,
    behavior: '`num_predict` of 0 loads the model without generating.',
  },
  'ollama:options:stop': {
    source: ollamaOptions,
    behavior: '`stop` is a list of texts. Empty texts in it are ignored.',
  },
  'ollama:options:seed': {
    source: ollamaOptions,
    behavior: 'A negative seed is random, whatever the Modelfile sets.',
  },
  'ollama:options:num-ctx': {
    source: ollamaOptions,
    behavior: '`num_ctx` is the context size. Zero or less means unset.',
  },
  'ollama:keep-alive:forms': {
    source: ollamaFaq,
    behavior:
      '`keep_alive` is a number of seconds or a duration. With a negative value the model never expires.',
  },
  'ollama:keep-alive:absent': {
    source: ollamaFaq,
    behavior: 'Without `keep_alive`, or with null, the keep-alive of the model stays the same.',
  },
  'ollama:keep-alive:invalid': {
    source: ollamaTypes,
    behavior: 'An invalid `keep_alive` gets a 400. A number of seconds as text is also invalid.',
  },
  'ollama:truncate:forms': {
    source: ollamaTypes,
    behavior: 'Old messages are dropped from a too long prompt, unless `truncate` is false.',
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
    behavior:
      'A model whose file names the infill tokens has the capability `insert`, also in the list of models.',
  },
  'ollama:show:lists': {
    source: ollamaShow,
    behavior: 'Long lists of the metadata are null, unless `verbose` is true.',
  },
  'ollama:show:model-info': {
    source: ollamaShow,
    behavior: 'The metadata has the parameter count, but no name and no chat template.',
  },
  'ollama:show:name': {
    source: ollamaShow,
    behavior: '`name` is accepted as the deprecated name of `model`.',
  },
  'ollama:show:system': {
    source: ollamaShow,
    behavior: 'show returns the requested `system`, but not the requested `template`.',
  },
  'ollama:show:no-paths': {
    source: ollamaShow,
    behavior: 'Responses do not reveal file paths.',
  },
  'ollama:ps:none': {
    source: ollamaRunning,
    behavior: 'Without a loaded model the list is empty, not null.',
  },
  'ollama:ps:shape': {
    source: ollamaRunning,
    behavior: 'A loaded model has its memory, its context size and its expiry.',
  },
  'ollama:ps:order': {
    source: ollamaRunning,
    behavior:
      'The model with the latest expiry comes first. One that never expires has a date centuries ahead.',
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
    behavior: '`POST /api/create` creates a model from a blob, and a model from another model.',
  },
  'ollama:routes:copy': {
    source: ollamaRoutes,
    behavior: '`POST /api/copy` gives a model a second name.',
  },
  'ollama:routes:delete': {
    source: ollamaRoutes,
    behavior: '`DELETE /api/delete` deletes a model. A second request gets a 404.',
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
    behavior: '`HEAD /api/blobs/:digest` finds a blob, and `POST` stores one.',
  },
  'ollama:routes:account': {
    source: ollamaRoutes,
    behavior: 'There is no cloud account. `/api/me` responds with 503, and signing out fails.',
  },
  'ollama:routes:web': {
    source: ollamaRoutes,
    behavior: 'There is no cloud. Web search and web fetch get a 403.',
  },
  'ollama:routes:recommendations': {
    source: ollamaRoutes,
    behavior: '`GET /api/experimental/model-recommendations` returns an empty list.',
  },
  'ollama:routes:v1': {
    source: ollamaRoutes,
    behavior: 'The routes that Ollama has under `/v1` are answered.',
  },
  'ollama:routes:unknown': {
    source: ollamaRoutes,
    behavior: 'Paths that Ollama does not have get a 404.',
  },
  'ollama:routes:scope': {
    source: ollamaRoutes,
    behavior: 'Routes that change models need the scope `models`. Without it they respond with 403.',
  },
  'ollama:blobs:large': {
    source: ollamaRoutes,
    behavior: 'A blob may be larger than the limit of other bodies.',
  },
  'ollama:blobs:parsed-body': {
    source: ollamaRoutes,
    behavior:
      'A blob that an earlier body parser has read is accepted if its bytes are available. Otherwise it gets a 400 with instructions.',
  },
  'ollama:blobs:client-disconnects': {
    source: ollamaRoutes,
    behavior: 'A blob is not stored if its client disconnects.',
  },
  'ollama:points:01-not-found': {
    source: ollamaRoutes,
    behavior:
      'Each route has its own text for a missing model. Without a name, generate responds with 404 and chat with 400.',
  },
  'ollama:points:02-options': {
    source: ollamaRoutes,
    behavior:
      'An option of a wrong type and an invalid `keep_alive` get a 400. An unknown option is ignored.',
  },
  'ollama:points:03-load-and-unload': {
    source: ollamaRoutes,
    behavior: 'The response to loading or unloading is one JSON object without durations.',
  },
  'ollama:points:04-last-line': {
    source: ollamaTypes,
    behavior: 'The last line of generate has the `context` and a `load_duration` above zero.',
  },
  'ollama:points:05-whole-prompt': {
    source: ollamaRoutes,
    behavior: '`prompt_eval_count` counts the whole prompt, including reused tokens.',
  },
  'ollama:points:06-thinking': {
    source: ollamaRoutes,
    behavior:
      "A model with reasoning uses it by default. Under `/v1` its template decides. Anthropic's API disables reasoning by default.",
  },
  'ollama:points:07-pull-errors': {
    source: ollamaStreaming,
    behavior: 'Errors of a pull are lines of the stream, whose status is 200.',
  },
  'ollama:points:08-progress': {
    source: ollamaStreaming,
    behavior: 'Progress lines omit empty fields.',
  },
  'ollama:points:09-whole-calls': {
    source: ollamaRoutes,
    behavior:
      "Calls arrive as a whole. Their arguments are an object in Ollama's API and a string in OpenAI's API.",
  },
  'ollama:points:10-v1-sampling': {
    source: ollamaRoutes,
    behavior: 'Chat completions sample at temperature 1 and top_p 1 by default.',
  },
  'ollama:points:11-digests': {
    source: ollamaRoutes,
    behavior: 'The digests in tags and ps are 64 hexadecimal digits without a prefix.',
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
      'A deleted model stays loaded. A blob with a wrong digest is rejected, but stored under its actual digest.',
  },
  'ollama:points:15-names': {
    source: ollamaRoutes,
    behavior:
      'Model names are found in any case, listed with their tags, and repeated as the client wrote them.',
  },
  'ollama:clients:no-error-key': {
    source: ollamaJs,
    behavior: 'Only a line with an error has the key `error`.',
  },
} as const satisfies Record<string, Requirement>

export type RequirementId = keyof typeof requirements
export type OpenAIRequirementId = Extract<RequirementId, `openai:${string}`>
export type AnthropicRequirementId = Extract<RequirementId, `anthropic:${string}`>
export type OllamaRequirementId = Extract<RequirementId, `ollama:${string}`>
