/** The cases of OpenAI's API that clients depend on, each with the tests that prove it. */
import { type CaseTable, differs, green, refused, testsOf } from './cases.ts'

const chats = testsOf('test/clients/openai.test.ts')
const outputs = testsOf('test/clients/openai-output.test.ts')
const constrained = testsOf('test/clients/openai-engine.test.ts')
const responses = testsOf('test/clients/openai-responses.test.ts')
const retries = testsOf('test/clients/limits.test.ts')
const others = testsOf('test/clients/agents/sdks/details.mjs')
const python = testsOf('test/clients/python.test.ts')
const situation = testsOf('test/clients/situations.ts')
const access = testsOf('test/conformance/manners.ts')
const faults = testsOf('test/conformance/faults.ts')
const answers = testsOf('test/local-engine/answers.test.ts')
const grammars = testsOf('test/local-engine/constrained.test.ts')
const embeddings = testsOf('test/local-engine/embeddings.test.ts')
const decoding = testsOf('packages/core/src/engine/local/model-process/decoding/scheduler.test.ts')

const pythonHelpers = python(
  'the helpers of the Python SDK %s, %s, join answers, and each error has its class',
)
const keyCheck = access('with `auth: keys`, only calls with a valid key, in either header, are answered')

export const openaiCases: CaseTable = {
  'Transport and errors': {
    1: green('Without authentication, any bearer key is accepted.', 'openai:auth:any-key-is-accepted'),
    2: green('Without authentication, no key is needed.', 'openai:auth:no-key-is-needed'),
    3: green('With authentication, a request without a key is a 401.', keyCheck),
    4: green(
      'A wrong key is a 401 `invalid_api_key`, which does not repeat the key.',
      keyCheck,
      testsOf('packages/core/src/accounts/keys/keys.test.ts')(
        'rejects unknown, revoked and expired keys with the same text',
      ),
    ),
    5: green('A key may be sent as `x-api-key`.', keyCheck),
    6: green(
      'Each response has a unique `x-request-id`, which the client reports.',
      'openai:transport:request-id',
      chats('a chat completion has the content, the finish reason and a request id'),
    ),
    7: green('A body that is not JSON is a 400 in JSON.', 'openai:errors:body-is-not-json'),
    8: green('A body that is a list or a text is a 400.', 'openai:errors:body-is-not-an-object'),
    9: green('Another method on a known path is a 405 in the envelope.', 'openai:errors:wrong-method'),
    10: green('An unknown path is a 404 that names it.', 'openai:errors:unknown-path'),
    11: green(
      'A preflight allows the headers of the clients.',
      access('a preflight from this machine gets the allowed methods and headers'),
    ),
    12: green(
      'A body of 3 MB is read, and one over the limit is a 413 in the envelope.',
      'openai:transport:large-body',
      'openai:transport:too-large-body',
    ),
    13: green('An unknown field is ignored.', 'openai:chat:unknown-field'),
    14: green('Null means the same as an absent field.', 'openai:chat:null-means-absent'),
    15: green(
      'Headers for organizations and betas have no effect.',
      'openai:transport:client-headers-have-no-effect',
    ),
    16: green(
      'An unknown model is a 404 `model_not_found` on each route, without a retry of the client.',
      'openai:chat:unknown-model',
      'openai:completions:errors',
      'openai:embeddings:errors',
      'openai:responses:errors-before-a-stream',
      chats('an unknown model makes the client throw a NotFoundError without a retry'),
    ),
    17: green('A missing `model` is a 400.', 'openai:chat:missing-model'),
    18: green('Missing `messages` are a 400 that names the field.', 'openai:chat:missing-messages'),
    19: green(
      'A failure of the engine is a 500 `server_error` without a stack or a path.',
      'openai:errors:engine-failure',
    ),
    20: green(
      'A full queue is a 503 with `retry-after`, and the client succeeds later.',
      'openai:limits:queue-is-full',
      retries('%s: a call that finds a full queue is answered by its retry, and charged once'),
    ),
    21: green(
      'A client that aborts a stream ends the generation within two seconds.',
      'openai:chat:stream-client-disconnects',
      situation('aborted mid-stream'),
    ),
    22: green(
      'A client that aborts a whole answer ends the generation within two seconds.',
      'openai:chat:client-disconnects',
    ),
    23: green(
      'A call that is aborted while it is queued never starts.',
      testsOf('test/local-engine/cancelling.test.ts')(
        'a call aborted while all slots are in use never starts',
      ),
      faults('a client that disconnects before the first token ends its generation'),
    ),
  },

  'Chat completions': {
    24: green('An answer has all fields, an id and the time.', 'openai:chat:whole-shape'),
    25: green('`max_tokens` is exact, and the usage adds up.', 'openai:chat:max-tokens'),
    26: green('`max_completion_tokens` overrides `max_tokens`.', 'openai:chat:max-completion-tokens-wins'),
    27: green(
      '`max_tokens` of 0 is a 400, and -1 means no limit.',
      'openai:chat:max-tokens-zero',
      'openai:chat:max-tokens-minus-one',
    ),
    28: green('Temperature 0 repeats the answer.', answers('temperature 0 always gives the same text')),
    29: green(
      'A seed repeats the answer, and another seed changes it.',
      answers('the same seed gives the same text, and another seed gives another text'),
    ),
    30: green('A temperature out of range is a 400 with the bound.', 'openai:chat:temperature-range'),
    31: green('`top_p` out of range is a 400.', 'openai:chat:top-p-range'),
    32: green(
      '`n` returns several choices of one prompt, which counts once.',
      'openai:choices:chat',
      testsOf('test/local-engine/choices.test.ts')(
        'further answers reuse the prompt of the first one, and equal those that are generated alone',
      ),
    ),
    33: green('`n` of 0 or 1,000 is a 400.', 'openai:chat:n-range', 'openai:choices:bad-input'),
    34: green(
      'A stop sequence ends the answer before it, also across tokens.',
      'openai:chat:stop-forms',
      answers('an answer ends before a stop sequence, even one that spans several tokens'),
    ),
    35: differs(
      'A bias of -100 bans a token, and a key that is no token is a 400.',
      "A key that is a text biases the tokens of the text, as in llama.cpp's server.",
      'openai:chat:logit-bias',
      answers('a bias of -100 bans a token, and ids outside the vocabulary are ignored'),
    ),
    36: green(
      '`top_logprobs` are sorted, and the tokens join to the content.',
      'openai:chat:logprobs',
      testsOf('test/local-engine/logprobs.test.ts')(
        'at temperature 0 the likeliest token is sampled, and each event has the tokens of its text',
      ),
    ),
    37: green('`top_logprobs` alone, or above 20, is a 400.', 'openai:chat:top-logprobs-range'),
    38: green(
      '`logprobs` without `top_logprobs` has empty alternatives.',
      'openai:chat:logprobs-without-alternatives',
    ),
    39: green(
      'Empty messages, and a message without a role or of an unknown role, are a 400 with the position.',
      'openai:chat:empty-messages',
      'openai:chat:message-without-role',
      'openai:chat:message-with-unknown-role',
    ),
    40: differs(
      'Text parts are one text.',
      "They are joined with a line break, as in llama.cpp's server.",
      'openai:chat:text-parts',
      chats('a prompt in several parts has as many tokens as the text that a line break joins'),
    ),
    41: green('`developer` means `system`.', 'openai:chat:developer-is-system'),
    42: green('Calls and their results may be sent back.', 'openai:chat:tool-messages'),
    43: green(
      'A result without a call, and a call without a result, are a 400.',
      'openai:chat:unmatched-tool-messages',
    ),
    44: green('An image for a text model is a 400 that names it.', 'openai:chat:image-on-text-model'),
    45: green(
      'A prompt longer than the context is a 400 with the known text, also for a stream.',
      'openai:chat:context-length',
      chats('a prompt longer than the context makes the client throw a BadRequestError'),
    ),
    46: green(
      'A `max_tokens` beyond the context is accepted, and a full context finishes with `length`.',
      'openai:chat:max-tokens-beyond-the-context',
      answers('an answer that fills the context ends with the finish reason context'),
      testsOf('packages/core/src/dialects/openai/render.test.ts')(
        'an answer that ends with %s has the finish reason %s',
      ),
    ),
    47: green(
      'A repeated prompt reports cached tokens, and as many prompt tokens as before.',
      chats('a prompt that repeats or continues an earlier one reports the tokens that it reuses'),
    ),
    48: green(
      'A prompt with a common beginning reports this beginning as cached.',
      chats('a prompt that repeats or continues an earlier one reports the tokens that it reuses'),
    ),
    49: green('Fields about accounts are accepted.', 'openai:chat:account-fields'),
    50: green('A request for audio is a 400.', 'openai:chat:audio-output'),
    51: green(
      'Emoji and CJK text stay whole.',
      'openai:chat:unicode',
      answers('an answer of random tokens contains only whole characters'),
    ),
  },

  'Structured output': {
    52: green(
      '`json_object` makes the answer an object.',
      'openai:chat:response-formats',
      grammars('with format json, each answer is an object, or the beginning of one at the token limit'),
    ),
    53: green(
      'An answer matches its schema, and `parse()` returns the object.',
      constrained('a response format constrains the output'),
      outputs('parse() returns the object of a response format, and the schema reaches the engine'),
    ),
    54: green(
      'A schema may be recursive, and have alternatives and null.',
      constrained('a response format may be recursive, and have alternatives and null'),
    ),
    55: green(
      'An unknown type in a schema is a 400.',
      constrained('an unsupported schema gets a 400 that names the keyword'),
    ),
    56: green('An unknown response format is a 400.', 'openai:chat:response-format-unknown'),
    57: differs(
      'A `json_schema` has a name.',
      'Without a name it is accepted, as by other local servers.',
      'openai:chat:response-formats',
    ),
    58: green(
      'A cut answer finishes with `length`, and `parse()` throws a `LengthFinishReasonError`.',
      outputs('JSON that is cut by the token limit makes parse() throw a LengthFinishReasonError'),
      others('OpenAI 7: a cut answer makes parse() throw a LengthFinishReasonError'),
    ),
  },

  Tools: {
    59: green(
      '`required` makes the model call a tool, with arguments that match its schema.',
      constrained('a tool call that is %s is made, with and without streaming'),
      grammars('calls of unseen tools with a %s tool choice have valid arguments'),
    ),
    60: green(
      'A named tool is called.',
      constrained('a tool call that is %s is made, with and without streaming'),
    ),
    61: green('A choice of an unknown tool is a 400.', 'openai:chat:tool-choice-of-missing-tool'),
    62: green(
      '`none` makes no call.',
      'openai:chat:tool-choice',
      testsOf('test/local-engine/tools.test.ts')('with toolChoice none, no tool is called'),
    ),
    63: green('`required` without tools is a 400.', 'openai:chat:tool-choice-of-missing-tool'),
    64: green(
      '`parallel_tool_calls: false` makes exactly one call.',
      'openai:chat:parallel-tool-calls',
      constrained('a tool call that is %s is made, with and without streaming'),
    ),
    65: green(
      '`allowed_tools` limits the calls to some tools.',
      'openai:chat:tool-choice',
      constrained('a tool call that is %s is made, with and without streaming'),
    ),
    66: green(
      'A function without parameters is called with `{}`.',
      'openai:chat:function-fields',
      'openai:chat:tools',
    ),
    67: green(
      'Ids of calls are unique.',
      constrained('a tool call that is %s is made, with and without streaming'),
      'openai:responses:tools',
    ),
    68: green(
      '`runTools()` runs the whole loop with strict tools.',
      constrained('the model calls a tool and uses its result in the answer (stream: %s)'),
      outputs('runTools calls the functions and gets the answer without streaming'),
    ),
    69: green('The deprecated `functions` are a 400.', 'openai:chat:functions-are-rejected'),
  },

  'Chat streams': {
    70: green('A stream ends with `[DONE]`, and then closes.', 'openai:chat:stream-ends-with-done'),
    71: green('Only the first chunk has the role.', 'openai:chat:stream-starts-with-role'),
    72: green(
      'The pieces are not empty, and join to the whole answer.',
      'openai:chat:stream-joins-to-whole',
      testsOf('test/local-engine/streams.test.ts')(
        '$path gives … random requests the same answer whole and streamed',
      ),
    ),
    73: green('The last chunk has an empty delta and the reason.', 'openai:chat:stream-finish-reason'),
    74: green(
      '`include_usage` adds one last chunk with the usage, and otherwise no chunk has one.',
      'openai:chat:stream-usage',
      'openai:chat:stream-without-usage',
    ),
    75: green('Id, time and model are the same in all chunks.', 'openai:chat:stream-identity'),
    76: green('With `n`, each choice has its role and its finish reason.', 'openai:choices:chat-stream'),
    77: green(
      'A streamed call has its id and name once, and its arguments in pieces.',
      'openai:chat:stream-tools',
      outputs('the stream helper joins tool calls and parses the arguments of strict tools'),
      pythonHelpers,
      others('OpenAI 7: the helpers join text and calls of a stream'),
    ),
    78: green('The logprobs of a stream join to the content.', 'openai:chat:stream-logprobs'),
    79: green(
      'Reasoning comes before the content, without tags, and is counted.',
      'openai:chat:reasoning',
      chats('reasoning is separate from the answer, and absent unless requested'),
    ),
    80: green(
      'Heartbeats during a slow prompt do not disturb a client.',
      testsOf('test/incidents/process/clients-gave-up-during-prefill.test.ts')(
        'the SDK of %s gets an answer that begins after ten minutes, and bytes at least every 15 s',
      ),
      pythonHelpers,
      others('OpenAI 7: the helpers join text and calls of a stream'),
      others("AI SDK with OpenAI's provider: text, calls and reasoning, of chats and responses"),
      others("LangChain with OpenAI's API: text and calls, of chats and responses"),
    ),
    81: green(
      'A failure during a stream is an error in each client, and the server serves the next call.',
      'openai:chat:stream-error',
      situation('engine killed mid-stream'),
    ),
    82: green(
      'An invalid request is a 400 in JSON, also with `stream`.',
      'openai:chat:stream-of-invalid-request',
    ),
    83: green(
      'The helpers of the clients join a stream to the whole answer.',
      chats('the stream helper joins the answer'),
      pythonHelpers,
      others('OpenAI 7: the helpers join text and calls of a stream'),
    ),
  },

  Completions: {
    84: green('An answer is a `text_completion`.', 'openai:completions:whole-shape'),
    85: green('The default of `max_tokens` is 16.', 'openai:completions:max-tokens'),
    86: green('Several prompts with `n` have their choices in order.', 'openai:choices:completions'),
    87: green(
      'A prompt of token ids equals its text.',
      'openai:completions:prompt-forms',
      constrained('`echo` with `logprobs` scores a prompt, as evaluation harnesses need it'),
    ),
    88: green('`echo` puts the prompt in front.', 'openai:completions:echo'),
    89: green('`logprobs` are parallel lists.', 'openai:completions:logprobs'),
    90: green(
      '`echo`, `logprobs` and no tokens score a prompt.',
      'openai:completions:echo-logprobs',
      constrained('`echo` with `logprobs` scores a prompt, as evaluation harnesses need it'),
    ),
    91: differs(
      '`logprobs` above the limit, and a `best_of` below `n`, are a 400.',
      'The limit of `logprobs` is 20, as for chats.',
      'openai:choices:bad-input',
      'openai:completions:bad-input',
    ),
    92: green(
      '`suffix` fills a gap, if the model can.',
      'openai:completions:suffix',
      embeddings(
        'puts prefix and suffix between the infill tokens of the model, and treats special tokens in them as text',
      ),
      embeddings('is rejected by a model without infill tokens'),
    ),
    93: green('A stream has chunks, a reason, the usage and `[DONE]`.', 'openai:completions:stream'),
  },

  Embeddings: {
    94: green(
      'The default of the clients, base64, becomes numbers.',
      outputs('embeddings are the same in base64, the default of the client, and as floats'),
      pythonHelpers,
      others('OpenAI 7: vectors in base64 become numbers'),
    ),
    95: green('Base64 and numbers are the same.', 'openai:embeddings:base64'),
    96: green(
      'A vector has the length 1.',
      'openai:embeddings:shape',
      embeddings('are one vector of length 1 for each text, in order, and equal for equal texts'),
    ),
    97: green('The order is kept, and equal texts are equal.', 'openai:embeddings:shape'),
    98: green(
      'Token ids give the vector of their text.',
      'openai:embeddings:input-forms',
      embeddings('are the same for a text and for its token ids, with or without special tokens'),
    ),
    99: green(
      'Empty inputs and unknown token ids are a 400.',
      'openai:embeddings:bad-input',
      embeddings('%s is rejected with the field name, and another call works'),
    ),
    100: green(
      '`dimensions` shortens a vector to the length 1, and too many are a 400.',
      'openai:embeddings:dimensions',
      'openai:embeddings:bad-input',
    ),
    101: green('A text longer than the context is a 400.', 'openai:embeddings:errors'),
    102: green(
      'The usage is the sum of all inputs, of which there may be many.',
      'openai:embeddings:shape',
      'openai:embeddings:many',
    ),
    103: green(
      'A model of another kind is a 400.',
      'openai:embeddings:errors',
      embeddings('a chat with an encoder is rejected'),
    ),
  },

  Models: {
    104: green(
      'All models are listed, and a list loads none.',
      'openai:models:list',
      testsOf('test/local-engine/loading.test.ts')(
        'lists of models load none, and are answered while a model loads',
      ),
    ),
    105: green(
      'A name with a slash and a colon is found, and an unknown one is a 404.',
      'openai:models:retrieve',
      'openai:models:retrieve-unknown',
      chats('models can be listed and retrieved'),
    ),
  },

  Responses: {
    106: green(
      'A response has all fields, and the client its `output_text`.',
      'openai:responses:whole-shape',
      responses('`output_text` is the text of a response'),
    ),
    107: green('Input items have parts or text.', 'openai:responses:input-forms'),
    108: green('A cut answer is incomplete, with status 200.', 'openai:responses:limit'),
    109: green(
      '`previous_response_id` continues a response without its instructions.',
      'openai:responses:previous',
      responses('a response is continued, retrieved, listed and deleted'),
    ),
    110: green(
      'An unknown previous response, and one that was not stored, is a 400.',
      'openai:responses:previous',
    ),
    111: green(
      'A stored response can be read, its input listed, and it can be deleted.',
      'openai:responses:stored',
      responses('a response is continued, retrieved, listed and deleted'),
    ),
    112: green(
      'A forced call has an id and a `call_id`, and its result may be sent.',
      responses('a required tool call and a text format match their schemas'),
      responses('the output of a response is accepted as input, with the result of its tool call'),
    ),
    113: green(
      '`text.format` makes the text match a schema.',
      responses('a required tool call and a text format match their schemas'),
    ),
    114: green(
      'The events of a stream are numbered, in order, and join to the text.',
      'openai:responses:stream',
      'openai:responses:stream-items',
    ),
    115: green(
      'The clients read the same text and calls from a stream.',
      responses('the stream helper joins reasoning, text and tool calls'),
      pythonHelpers,
      others('OpenAI 7: the helpers join text and calls of a streamed response'),
      others("AI SDK with OpenAI's provider: text, calls and reasoning, of chats and responses"),
      others("LangChain with OpenAI's API: text and calls, of chats and responses"),
    ),
    116: green('A cut stream ends with `response.incomplete`.', 'openai:responses:limit'),
    117: green(
      'Reasoning is an item, with a summary on request.',
      'openai:responses:reasoning',
      responses('reasoning is separate from the text, and its tokens are counted'),
      others("AI SDK with OpenAI's provider: text, calls and reasoning, of chats and responses"),
    ),
    118: green(
      'Hosted tools beside a free choice are ignored, and an unknown item is a 400.',
      'openai:responses:hosted-tools',
      'openai:responses:bad-input',
    ),
    119: green('A failure during a stream is `response.failed`.', 'openai:responses:stream-fails'),
    120: refused(
      'A missing input is a 400, and a response may run in the background.',
      'background',
      'A response in the background is a 400. Batches run in the background.',
      'openai:responses:bad-input',
      'openai:responses:unsupported-state',
    ),
    121: green(
      'The count of input tokens is that of the same call.',
      'openai:responses:input-tokens',
      responses('inputTokens.count() returns the input tokens of the same call'),
    ),
  },

  'Files and batches': {
    122: green(
      'A file is listed, read with the same bytes, and deleted.',
      'openai:transport:upload-roundtrip',
    ),
    123: green(
      'A batch with an invalid line completes, with an output and an error file.',
      'openai:transport:batch-lifecycle',
    ),
    124: green('An invalid file fails its batch, with the lines.', 'openai:batches:invalid-files'),
    125: green('A canceled batch keeps what is finished.', 'openai:transport:batch-cancel-without-body'),
    126: green(
      'A call is answered while a batch runs.',
      'openai:batches:interactive-calls',
      testsOf('test/incidents/tenants/a-batch-slowed-every-chat.test.ts')(
        'beside a batch of … items, all chats are answered, their first tokens come soon, and the batch waits for them',
      ),
    ),
  },

  Robustness: {
    127: green(
      'Many streams over few sequences all end, each with its own text.',
      'openai:chat:stream-many-at-once',
      grammars('parallel answers each follow their own output constraint, or none'),
      testsOf('test/local-engine/parallel.test.ts')('more concurrent calls than slots all get an answer'),
    ),
    128: green(
      'A long prompt delays other streams by one chunk at a time.',
      decoding(
        'a long prompt does not block decoding: a decode step follows each of its chunks but the last two',
      ),
    ),
    129: green(
      'All adapters send the same bodies.',
      testsOf('test/conformance/same-answers.test.ts')('every mount gives the same response: %s (%s)'),
    ),
    130: green('A body that the app has parsed gets the same answer.', 'openai:transport:parsed-body'),
  },
}
