/** The cases of Anthropic's API that clients depend on, each with the tests that prove it. */
import { type CaseTable, differs, green, testsOf } from './cases.ts'

const messages = testsOf('test/clients/anthropic.test.ts')
const tools = testsOf('test/clients/anthropic-tools.test.ts')
const caches = testsOf('test/clients/anthropic-cache.test.ts')
const batches = testsOf('test/clients/batches.test.ts')
const retries = testsOf('test/clients/limits.test.ts')
const others = testsOf('test/clients/agents/sdks/details.mjs')
const python = testsOf('test/clients/python.test.ts')
const situation = testsOf('test/clients/situations.ts')
const access = testsOf('test/conformance/manners.ts')
const faults = testsOf('test/conformance/faults.ts')
const inputTokens = testsOf('test/limits/input-tokens.test.ts')
const invalid = testsOf('test/conformance/anthropic-bad-input.ts')
const invalidBatches = testsOf('test/conformance/anthropic-batches.ts')
const resultsUrl = testsOf('test/conformance/results-url.test.ts')
const answers = testsOf('test/local-engine/answers.test.ts')
const cache = testsOf('test/local-engine/prompt-cache.test.ts')
const keys = testsOf('packages/core/src/accounts/keys/keys.test.ts')
const ledger = testsOf('packages/core/src/accounts/usage/ledger.test.ts')
const metering = testsOf('packages/core/src/calls/metering.test.ts')
const versions = testsOf('packages/core/src/dialects/model-versions.test.ts')
const images = testsOf('test/upstream/images.test.ts')
const express = testsOf('packages/express/src/middleware.test.ts')

const pythonHelpers = python(
  'the helpers of the Python SDK %s, %s, join answers, and each error has its class',
)
const keyCheck = access('with `auth: keys`, only calls with a valid key, in either header, are answered')

export const anthropicCases: CaseTable = {
  'Transport and keys': {
    1: green(
      'The client sends its key as a bearer token, and reports the `request-id`.',
      messages('a message has the content, the stop reason and a request id'),
      situation('non-streamed answer'),
      'anthropic:transport:request-id',
    ),
    2: green(
      'Clients that send `x-api-key` get the same answer.',
      situation('non-streamed answer'),
      'anthropic:auth:any-key-is-accepted',
      others("AI SDK with Anthropic's provider: text, calls and thinking"),
      others("LangChain with Anthropic's API: text, calls, objects and usage"),
    ),
    3: differs(
      'A request may have a key in both headers.',
      'Both have to be the same key: a wrong key beside a valid one is a 401, so that no key hides behind another.',
      keyCheck,
      testsOf('test/incidents/access/one-header-skipped-the-limits.test.ts')(
        'two different keys, or one key beside a wrong one, get a 401',
      ),
    ),
    4: green('Without a key, a request is a 401 in the envelope, and no model runs.', keyCheck),
    5: green(
      'A revoked or expired key is a 401 for the next request.',
      keyCheck,
      keys('expires a key to the millisecond, also in the list'),
      keys('rejects unknown, revoked and expired keys with the same text'),
      keys('a key revoked there is rejected here at the next call'),
    ),
    6: green('The answer does not depend on the version.', 'anthropic:transport:any-version'),
    7: green('`?beta=true` changes nothing.', 'anthropic:transport:any-beta'),
    8: green('Unknown betas change nothing.', 'anthropic:transport:any-beta'),
    9: green('The probe of Claude Code gets a quiet 404.', 'anthropic:transport:probes'),
    10: differs(
      'A body that is not JSON is a 400 in the envelope.',
      'Behind a JSON parser of the app, the app answers such a body itself, with 400.',
      'anthropic:errors:body-is-not-json',
      express('the router handles broken JSON and a body over 100 kB before express.json()'),
      express('%s is answered by Express, with %i, behind express.json()'),
    ),
    11: green(
      'A body over the limit is a 413, and the connection serves the next call.',
      'anthropic:errors:too-large-body',
      testsOf('test/conformance/bad-input.ts')(
        'a body over the limit gets a 413, and the connection serves the next call (OpenAI API)',
      ),
    ),
    12: green(
      'An unknown path is a 404 in the envelope of the API of the client.',
      'anthropic:errors:unknown-path',
    ),
    13: green('Another method is a 405 in the envelope.', 'anthropic:errors:wrong-method'),
    14: green(
      'The base URL may have a prefix and a slash at its end.',
      messages('the base URL may have a prefix, and may end with a slash'),
    ),
    15: green(
      'A preflight allows the headers of browsers, and the answer exposes its own.',
      'anthropic:transport:browsers',
      access('a web page from this machine may read the answer and its headers'),
    ),
  },

  Messages: {
    16: green(
      'A message has all fields.',
      'anthropic:messages:whole-shape',
      messages('a message has the content, the stop reason and a request id'),
    ),
    17: green('One text block is the same prompt as its text.', 'anthropic:messages:text-blocks'),
    18: green('`system` may be a text or blocks.', 'anthropic:messages:text-blocks'),
    19: green('`max_tokens` is exact.', 'anthropic:messages:max-tokens'),
    20: green(
      'A stop sequence is named, and no part of it is sent.',
      'anthropic:messages:stop-sequence',
      messages('a stop sequence ends the answer, is not part of it, and is named in the response'),
    ),
    21: green('A temperature out of range is a 400 with the bound.', 'anthropic:messages:sampling-ranges'),
    22: green(
      'Temperature 0 repeats the answer, also from Python.',
      python('%s'),
      situation('non-streamed answer'),
      answers('temperature 0 always gives the same text'),
    ),
    23: green('A missing field is `Field required`.', 'anthropic:messages:missing-fields'),
    24: green(
      'An unknown model is a 404 that names it.',
      'anthropic:messages:unknown-model',
      messages('an unknown model makes the client throw a NotFoundError without a retry'),
    ),
    25: green('Empty messages are a 400.', 'anthropic:messages:empty-messages'),
    26: green('Consecutive turns of one role are read together.', 'anthropic:messages:turns-are-merged'),
    27: green(
      'A begun answer is continued and not repeated, also after a space.',
      'anthropic:messages:prefill',
      messages('a trailing assistant message is continued'),
    ),
    28: green('A system message may be anywhere.', 'anthropic:messages:system-among-messages'),
    29: green('An unknown role is a 400 with its position.', 'anthropic:messages:unknown-role'),
    30: green('An unknown block is a 400 with `Input tag`.', 'anthropic:messages:unknown-block'),
    31: green(
      'An image is a 400 for a text model, and read by a model that sees.',
      'anthropic:messages:image-on-text-model',
      images("Anthropic's client sends images in messages and in results of tools, and counts them"),
    ),
    32: green('A text document is part of the prompt, and a PDF is a 400.', 'anthropic:messages:documents'),
    33: green('Fields about accounts and editing are ignored.', 'anthropic:messages:ignored-fields'),
    34: green(
      'MCP servers are a 400, and an empty list is none.',
      'anthropic:messages:mcp-servers-are-rejected',
    ),
    35: green(
      'A prompt longer than the context is a 400 with the known text.',
      'anthropic:messages:context-length',
      messages('a prompt longer than the context makes the client throw a BadRequestError'),
    ),
    36: green(
      'A full context ends the answer with its own reason.',
      'anthropic:messages:context-is-full',
      answers('an answer that fills the context ends with the finish reason context'),
    ),
    37: green('`stream: false` is a whole answer.', 'anthropic:transport:accept-is-ignored'),
    38: green('Only `stream` chooses a stream, and never `accept`.', 'anthropic:transport:accept-is-ignored'),
    39: green(
      'An empty answer has no content.',
      'anthropic:messages:empty-answer',
      tools('an empty answer is a message without content, with and without streaming'),
      pythonHelpers,
      others("AI SDK with Anthropic's provider: an empty answer, and a call without arguments"),
      others("LangChain with Anthropic's API: an empty answer, and a call without arguments"),
    ),
    40: green(
      '`max_tokens: 0` only fills the cache, and not in a stream.',
      'anthropic:cache:pre-warm',
      'anthropic:cache:pre-warm-rejected',
      caches('`max_tokens: 0` caches a prompt for the next call'),
    ),
  },

  Tools: {
    41: green(
      'A call is a block with an id and an object that matches the schema.',
      'anthropic:tools:whole',
      tools('a forced tool is called without text, also in a stream'),
    ),
    42: green(
      'A call without arguments has an empty object.',
      'anthropic:tools:no-arguments',
      tools('a call without arguments has an empty input, with and without streaming'),
      others("AI SDK with Anthropic's provider: an empty answer, and a call without arguments"),
      others("LangChain with Anthropic's API: an empty answer, and a call without arguments"),
    ),
    43: green(
      'A result, or an error, reaches the model, which answers.',
      'anthropic:tools:round-trip',
      tools('the model calls a tool and uses its result in the answer'),
    ),
    44: green(
      'Two calls have two ids, and both results may come in one message.',
      'anthropic:tools:round-trip',
      tools('thinking, text and two calls are joined, each in its own block'),
    ),
    45: green(
      'A tool choice is obeyed, and one of an unknown tool is a 400.',
      'anthropic:tools:choice',
      'anthropic:tools:choice-of-missing-tool',
      tools('a forced tool is called without text, also in a stream'),
      testsOf('test/local-engine/tools.test.ts')('with toolChoice none, no tool is called'),
    ),
    46: green(
      '`disable_parallel_tool_use` makes at most one call.',
      'anthropic:tools:choice',
      tools('a forced tool is called without text, also in a stream'),
    ),
    47: green(
      'A call without a result, or a result without a call, is a 400 with the id.',
      'anthropic:tools:pairs',
    ),
    48: green('A result may be absent, empty, a text or blocks.', 'anthropic:tools:result-contents'),
    49: green('Invalid tools are a 400.', 'anthropic:tools:definitions'),
    50: green(
      'A hosted tool is a 400 that names it, and a tool that the client runs is known.',
      'anthropic:tools:hosted-are-rejected',
      'anthropic:tools:known-schemas',
    ),
    51: green(
      'The AI SDK runs several steps with tools.',
      tools("the client's toolRunner() runs calls and results to the end (stream: %s)"),
      others("AI SDK with Anthropic's provider: text, calls and thinking"),
    ),
    52: green(
      'LangChain binds tools and reads objects.',
      tools('the client parses an answer in a format'),
      others("LangChain with Anthropic's API: text, calls, objects and usage"),
    ),
    53: green('Four kilobytes of arguments stay intact.', 'anthropic:tools:long-arguments'),
    54: green(
      'A call that the limit cuts is no error of the client.',
      'anthropic:tools:incomplete-call',
      tools('a tool call that is cut by the token limit causes no client error'),
    ),
    55: green('A history with calls needs no tools.', 'anthropic:tools:history-without-tools'),
  },

  Streams: {
    56: green(
      'The events have their order, and join to the whole message.',
      'anthropic:messages:stream-order',
      messages('the stream helper joins a stream to the same message as without streaming'),
    ),
    57: green('Each frame names its event, without `[DONE]`.', 'anthropic:messages:stream-frames'),
    58: green(
      'The first usage has the input, and the last one is cumulative.',
      'anthropic:messages:stream-usage',
      'anthropic:cache:streams',
    ),
    59: green(
      'The usage that LangChain adds up is that of a whole answer.',
      'anthropic:messages:stream-usage',
      others("LangChain with Anthropic's API: text, calls, objects and usage"),
    ),
    60: green(
      'The AI SDK reads text, calls and thinking without an error.',
      'anthropic:tools:blocks-in-order',
      others("AI SDK with Anthropic's provider: text, calls and thinking"),
    ),
    61: green(
      'Thinking comes first, is signed, and may be sent back.',
      'anthropic:thinking:requested',
      tools('thinking is streamed, signed, and accepted in later turns'),
    ),
    62: green(
      'Thinking that is not requested has no block, and adaptive thinking is accepted.',
      'anthropic:thinking:not-requested',
      'anthropic:thinking:omitted',
    ),
    63: green('Blocks are numbered from 0 without a gap.', 'anthropic:tools:blocks-in-order'),
    64: green(
      'Characters of several tokens stay whole.',
      'anthropic:messages:stream-joins-to-whole',
      testsOf('test/incidents/streams/characters-broke-between-tokens.test.ts')(
        'in the API of %s, emoji and CJK characters arrive whole, each with its last token',
      ),
    ),
    65: green(
      'A slow prompt sends a ping at least every 15 s.',
      faults('a stream of a slowly loading model has headers after 5 s, heartbeats, and then the answer'),
      testsOf('test/incidents/process/clients-gave-up-during-prefill.test.ts')(
        'the SDK of %s gets an answer that begins after ten minutes, and bytes at least every 15 s',
      ),
    ),
    66: green(
      'A killed engine is an error of the client, of the type `api_error`.',
      situation('engine killed mid-stream'),
      'anthropic:messages:stream-error',
    ),
    67: green(
      'An abort ends the generation, and what was sent is charged.',
      'anthropic:messages:stream-client-disconnects',
      testsOf('test/local-engine/cancelling.test.ts')(
        'an abort during generation frees the slot within 25 tokens of another stream',
      ),
      testsOf('test/usage/aborts.test.ts')(
        'covers only delivered tokens if the client aborts, and the other tokens are recorded as undelivered',
      ),
    ),
    68: green(
      'An invalid request is a 400, also with `stream`.',
      'anthropic:messages:stream-of-invalid-request',
      invalid('a stream that is not a boolean'),
    ),
    69: green(
      'Streams at the same time do not mix.',
      testsOf('test/local-engine/parallel.test.ts')('the tokens of parallel streams are interleaved'),
      testsOf('test/local-engine/parallel.test.ts')(
        'answers with a seed are the same alone and in parallel, with f16 weights',
      ),
      'openai:chat:stream-many-at-once',
    ),
    70: green(
      'Behind middleware that compresses, pieces arrive one by one.',
      express('a streamed chat arrives piece by piece, and uncompressed'),
    ),
  },

  'Prompt cache': {
    71: green(
      'The first call writes, the second reads, and all parts add up to the count.',
      'anthropic:cache:accounting',
    ),
    72: green(
      'A prefix expires five minutes after its last use.',
      'anthropic:cache:lifetime',
      cache('each read restarts the five minutes'),
      cache('a state that was not used for more than five minutes is written again'),
    ),
    73: green(
      'A short prefix is neither written nor read.',
      caches('a prefix shorter than a chunk is not cached'),
    ),
    74: green('Five breakpoints are a 400.', 'anthropic:cache:at-most-four'),
    75: green(
      'An hour may precede five minutes, and not follow them.',
      'anthropic:cache:longer-first',
      'anthropic:cache:mixed-lifetimes',
    ),
    76: green(
      'Another tool invalidates all, and another question keeps the system.',
      'anthropic:cache:changes',
    ),
    77: green('Tenants share no cache, and callers of one do.', 'anthropic:cache:tenants'),
    78: green(
      'Without breakpoints the usage has no cache.',
      'anthropic:cache:without-breakpoint',
      caches('tokens reused without a breakpoint are only in the header, and in the usage of other APIs'),
    ),
    79: green(
      'An unknown `ttl` is a 400, and null is none.',
      'anthropic:cache:types',
      'anthropic:cache:markers',
    ),
    80: green('A changing billing block keeps the cache.', 'anthropic:cache:billing-block'),
    81: green(
      'A growing conversation reads more with each turn.',
      'anthropic:cache:growing-conversation',
      caches('a conversation with automatic caching reads more with each turn'),
    ),
    82: green(
      'An evicted prefix is written, and never reported as read.',
      caches('an evicted prefix is written again, not read'),
    ),
  },

  'Errors and limits': {
    83: green(
      'A request over the limit is a 429 with `retry-after`, and the client succeeds later.',
      'anthropic:limits:over-the-limit',
      retries('%s: a rate-limited call is answered after one retry, with and without streaming'),
    ),
    84: green(
      'A key at its spending limit is tried once.',
      'anthropic:limits:spending-limit',
      retries('%s: a call at the spending limit is not retried'),
    ),
    85: green(
      'Answers, streams and rejections have the headers of the limits.',
      'anthropic:limits:headers-on-every-response',
      'anthropic:limits:over-the-limit',
      testsOf('packages/core/src/dialects/anthropic/limit-headers.test.ts')(
        'the reset of a limit is a timestamp in whole seconds, rounded up',
      ),
    ),
    86: green(
      'Cached tokens do not count towards a limit of input tokens.',
      inputTokens(
        'a prompt that is not cached takes all its tokens, and the next one is a 429 that names the limit',
      ),
      inputTokens('a cached prompt is admitted again and again, since its cached tokens do not count'),
    ),
    87: green(
      'Tokens that run out during an answer do not end it, and the next call is a 429.',
      metering('that are exhausted during an answer do not abort it, and are settled at its end'),
      metering('reject other calls while a long answer uses up the tokens, and are exact when it ends'),
    ),
    88: green(
      'A full queue is a 529, an `OverloadedError` after all retries.',
      'anthropic:limits:queue-is-full',
      retries('%s: a call that finds a full queue is answered by its retry, and charged once'),
      retries('makes each client throw the class of its status, with our message'),
      others("AI SDK with Anthropic's provider: errors have our text, and a full queue is tried again"),
    ),
    89: green(
      'A spent key is a 400 with the time, may count tokens, and pays again in the next period.',
      'anthropic:limits:spending-limit',
      ledger('a day ends at midnight in UTC, a month at its end, a lifetime never'),
    ),
    90: green(
      'An error of the AI SDK has our text.',
      retries('makes each client throw the class of its status, with our message'),
      others("AI SDK with Anthropic's provider: errors have our text, and a full queue is tried again"),
    ),
    91: green(
      'Each status has its class in each client.',
      retries('makes each client throw the class of its status, with our message'),
      pythonHelpers,
      testsOf('packages/core/src/dialects/anthropic/errors.test.ts')(
        '%s is rendered with the status %i and the type %s',
      ),
    ),
    92: green(
      'A retry after a full queue is served and charged once.',
      retries('%s: a call that finds a full queue is answered by its retry, and charged once'),
    ),
  },

  'Models and token counts': {
    93: green(
      'The client pages through all models, forward and backward.',
      versions('the SDK pages through models, snapshots and aliases'),
      'anthropic:models:pages',
    ),
    94: green(
      'Each client gets the list of its API from one path.',
      'anthropic:models:list-by-header',
      messages('models can be listed and retrieved'),
      testsOf('test/clients/openai.test.ts')('models can be listed and retrieved'),
    ),
    95: green(
      'A name with slashes is found, and an unknown one is a `NotFoundError`.',
      'anthropic:models:retrieve',
      'anthropic:models:retrieve-unknown',
      messages('models can be listed and retrieved'),
    ),
    96: green(
      'A list without a version is answered while a model loads.',
      'anthropic:models:list-by-header',
      testsOf('test/local-engine/loading.test.ts')(
        'lists of models load none, and are answered while a model loads',
      ),
    ),
    97: green('A `limit` out of range is a 400.', 'anthropic:models:pages'),
    98: green(
      'A token count equals the prompt of the same call, also over the beta route.',
      'anthropic:count:prompt',
      'anthropic:count:invalid',
      messages('countTokens() returns the input tokens of the same call: %s'),
      tools('countTokens() returns the input tokens of a call with tools, calls and results'),
    ),
  },

  'Message batches': {
    99: green('A new batch has its counts and ends within a day.', 'anthropic:transport:batch-lifecycle'),
    100: green(
      'An ended batch has one result for each item, with typed errors.',
      'anthropic:batches:counts',
      batches('creates a batch, polls it, reads its results, lists it and deletes it'),
    ),
    101: green(
      'Ids that are used twice, invalid or too long, and no items, are a 400.',
      invalidBatches('a `custom_id` twice'),
      invalidBatches('a `custom_id` with other characters, empty or of 65 characters'),
      invalidBatches('no items'),
    ),
    102: green(
      'A batch is canceled without a body, also twice.',
      'anthropic:transport:batch-cancel-without-body',
    ),
    103: green(
      'A running batch cannot be deleted, and a deleted one is a 404.',
      'anthropic:batches:delete-and-results-before-the-end',
      'anthropic:transport:batch-lifecycle',
    ),
    104: green('A batch of another tenant is a 404.', 'anthropic:batches:owners'),
    105: green(
      'The URL of the results is absolute, also behind a proxy, and can be downloaded.',
      resultsUrl(
        'the URL of the results has the origin and the prefix of the request, and can be downloaded',
      ),
      resultsUrl("Anthropic's client downloads the results through a trusted proxy"),
      testsOf('test/clients/agents/sdks/ai-sdk.mjs')('batch, also behind a proxy'),
      python('the Python SDK %s, %s, runs a whole batch and cancels one'),
    ),
    106: green(
      'Results are lines, streamed page by page.',
      'anthropic:transport:batch-results-are-lines',
      'anthropic:transport:batch-results-that-fail',
    ),
    107: green(
      'A batch continues after a restart.',
      'anthropic:batches:restart',
      testsOf('packages/core/src/batches/lifecycle.test.ts')(
        'the items of a killed process run in another one',
      ),
    ),
    108: green('An item with a stream fails alone.', 'anthropic:batches:stream-is-rejected'),
  },

  'Keys and reports': {
    109: green(
      'A secret is shown once, and a key needs a name and can be revoked.',
      keys('creates a key whose secret authenticates its caller'),
      keys('rejects %j and names the invalid field'),
      testsOf('test/admin/secrets.test.ts')('no log message or response contains a secret ($name)'),
      keyCheck,
    ),
    110: green(
      'Reports by key and model add up, with cached tokens and batches apart.',
      ledger('reports a range of days by key, model or day'),
      ledger('writes one row per call, with tokens by kind, cost and outcome'),
      testsOf('packages/core/src/batches/batches.test.ts')(
        'cost half the price, and are separate in reports',
      ),
      testsOf('test/limits/quiet-calls.test.ts')(
        'calls of every inference route count requests and tokens, and are in the ledger',
      ),
    ),
  },
}
