/**
 * Public incidents of similar servers, each with the tests that show that it does not happen here. The letter
 * of an id is its group. `incidents.test.ts` checks that all tests exist.
 */

export interface Incident {
  /** What happened to the peers, in one sentence. */
  readonly what: string
  readonly answer: Answer
}

export type Answer =
  | { readonly tests: readonly Proof[] }
  /** The capability that brings the test, since only this capability makes the incident possible. */
  | { readonly due: 'console' }

/** A test file, from the root of the repository, and the title of one of its tests, with its placeholders. */
export type Proof = readonly [file: string, title: string]

const tested = (what: string, ...tests: readonly Proof[]): Incident => ({ what, answer: { tests } })
const due = (what: string, capability: Extract<Answer, { due: unknown }>['due']): Incident => ({
  what,
  answer: { due: capability },
})

export const incidents: Readonly<Record<string, Incident>> = {
  // Pull, store and files.
  'A-1': tested(
    'A digest in a pulled manifest contained `../`, and the server wrote any file.',
    [
      'test/incidents/store/digests-became-paths.test.ts',
      'a pull rejects each digest in each place of a manifest, and requests no blob',
    ],
    [
      'test/registry/faults.test.ts',
      'an invalid digest in a manifest is rejected before any blob request: %s',
    ],
    [
      'packages/core/src/models/ollama-store/digest.test.ts',
      'any text is rejected or yields a file name of hexadecimal digits',
    ],
  ),
  'A-2': tested(
    'A second transfer made paths of digests without the check of the first.',
    [
      'test/incidents/store/digests-became-paths.test.ts',
      'uploads, lookups and creates reject each digest, and write nothing',
    ],
    ['test/conformance/ollama-bad-names.ts', 'rejected with 400: invalid digests (Ollama API)'],
  ),
  'A-3': tested(
    'Entries of an uploaded archive were written outside of its folder.',
    [
      'test/incidents/store/archives-wrote-outside-the-store.test.ts',
      'create rejects %s and extracts nothing',
    ],
    ['test/conformance/ollama-bad-names.ts', 'rejected with 400: invalid create requests (Ollama API)'],
  ),
  'A-4': tested(
    'Model names became paths of folders.',
    [
      'test/conformance/ollama-bad-names.ts',
      'rejected with 400: invalid model names, in every route with a model name (Ollama API)',
    ],
    [
      'packages/core/src/models/ollama-store/name.test.ts',
      'any text parses to a name or undefined, and the display name parses to the same name',
    ],
    ['test/registry/refused.test.ts', 'a pull rejects an invalid model name before its first event: %j'],
  ),
  'A-5': tested(
    'A pull sent requests to hosts inside the network of the server.',
    [
      'test/registry/refused.test.ts',
      'a pull rejects a registry that is not allowed before its first event: %s',
    ],
    ['test/registry/refused.test.ts', 'a redirect of %s to another private address ends the pull at once'],
    ['packages/core/src/models/registry/guarded-fetch.test.ts', 'is blocked in a URL: %s'],
    ['packages/core/src/models/registry/guarded-fetch.test.ts', 'is blocked as a redirect target: %s'],
  ),
  'A-6': tested(
    'A host name resolved to a public address for the check, and to a private one for the connection.',
    [
      'test/incidents/store/a-name-resolved-to-another-address.test.ts',
      'the address of each connection is checked, also when the name resolved to a public one before',
    ],
    ['packages/core/src/models/registry/guarded-fetch.test.ts', 'is blocked where a name resolves to it: %s'],
  ),
  'A-7': tested(
    'A token for one registry was sent to another host.',
    ['test/registry/credentials.test.ts', 'a pull sends no token request to a realm on another host'],
    ['test/registry/credentials.test.ts', 'a redirected request to another origin contains no token'],
    ['test/registry/credentials.test.ts', 'an upload to another origin contains no token'],
  ),
  'A-8': tested(
    'The URLs of images and galleries were fetched without a check.',
    [
      'test/incidents/store/urls-in-requests-were-fetched.test.ts',
      'images by URL are rejected without a request, also local files and large data',
    ],
    [
      'test/incidents/store/urls-in-requests-were-fetched.test.ts',
      'images by URL are not requested for a model that sees, unless their host is allowed and public',
    ],
    [
      'test/incidents/store/urls-in-requests-were-fetched.test.ts',
      'an image by URL in the Responses API becomes a stand-in text, and is not requested',
    ],
    [
      'test/incidents/store/urls-in-requests-were-fetched.test.ts',
      'a model is not created from a URL or a local path',
    ],
  ),
  'A-9': tested(
    'A compressed manifest of a few kilobytes filled the memory.',
    ['test/registry/faults.test.ts', 'a compressed manifest is rejected before its body is read'],
    ['test/registry/faults.test.ts', 'an endless manifest is read only up to the limit'],
  ),
  'A-10': tested(
    'Sizes that a manifest or a model declared were allocated.',
    ['test/registry/faults.test.ts', 'a blob whose size is %s is rejected and not requested'],
    ['test/store/forged.test.ts', 'create rejects a header with %s without reading the file of 8 GB'],
  ),
  'A-11': tested(
    'Interrupted and concurrent pulls damaged models.',
    [
      'test/registry/kills.test.ts',
      'a pull that is killed several times repeats at most one part per kill, and stores the right bytes',
    ],
    ['test/registry/kills.test.ts', 'when two processes pull one model, each byte is downloaded once'],
  ),
  'A-12': tested(
    'A registry answered a request for a range with other bytes, and they were stored.',
    ['test/registry/faults.test.ts', 'when the registry sends %s'],
    ['test/registry/faults.test.ts', 'when a blob has a wrong digest, and leaves no files'],
    ['test/registry/faults.test.ts', 'accepts a complete blob from a registry that ignores ranges'],
    ['test/registry/faults.test.ts', 'resumes after a stall at the received offset'],
  ),
  'A-13': tested(
    'A route passed flags from its body to the engine, which overwrote files.',
    [
      'test/incidents/store/requests-set-engine-flags.test.ts',
      '$path ignores unknown fields and options, as its API does',
    ],
    [
      'test/incidents/store/requests-set-engine-flags.test.ts',
      'create rejects or ignores unknown parameters, and never passes them to the engine',
    ],
  ),
  'A-14': tested('Anybody could delete models.', [
    'test/incidents/access/keys-without-the-scope-managed-others.test.ts',
    'a key with the scope inference gets a 403 from every route that manages models, keys or usage',
  ]),

  // Model files, templates, grammars and other input of the engine.
  'B-1': tested(
    'Tensors that lie outside of their file exposed the memory of the server.',
    [
      'test/store/forged.test.ts',
      'create rejects more than a hundred forged files as invalid requests within 3 s each',
    ],
    ['test/fuzz/gguf.test.ts', 'a GGUF file with overwritten lengths is read or rejected within 2 s'],
    [
      'test/local-engine/forged.test.ts',
      'more than 40 % of the faulty files are rejected before native code loads them, with a reason',
    ],
  ),
  'B-2': tested(
    'A header of a few bytes that declares billions of entries took all memory.',
    ['test/store/forged.test.ts', 'create rejects a header with %s without reading the file of 8 GB'],
    ['packages/core/src/models/gguf/gguf.test.ts', '%s is rejected'],
  ),
  'B-3': tested(
    'Faulty model files ended the server while they were loaded.',
    [
      'test/local-engine/crashes.test.ts',
      'gives an upstream error, and after two crashes is not loaded again until it changes',
    ],
    [
      'test/local-engine/forged.test.ts',
      'crash no model process, apart from known crashes, and the next call is served',
    ],
  ),
  'B-4': tested(
    'A negative number among the options wrote outside of a buffer.',
    [
      'test/local-engine/bad-input.test.ts',
      'an in-process call with a bad %s is rejected before native code runs: %j',
    ],
    ['test/local-engine/bad-input.test.ts', 'a request with %j is answered'],
    [
      'test/fuzz/chat-request.test.ts',
      'each of 300 random chat requests to a real model gets a completion or an error from one process',
    ],
    [
      'test/fuzz/ollama-request.test.ts',
      'each of 200 random requests to a real model gets an answer or an error, and the next call works',
    ],
  ),
  'B-5': tested(
    'Grammars and schemas of one caller ended the engine for all.',
    [
      'test/incidents/model-input/schemas-ended-the-engine.test.ts',
      'each of them gets a 400, while a stream of another caller goes on in the same process',
    ],
    [
      'test/local-engine/hostile-neighbours.test.ts',
      'eight streams of another model finish while calls are rejected: %s',
    ],
    ['packages/core/src/grammar/gbnf/check.test.ts', 'rejects %j: %s'],
    [
      'test/incidents/model-input/one-long-word-ended-every-stream.test.ts',
      'a word of 30,000 letters is counted, tokenized and answered, and other answers go on',
    ],
    [
      'test/incidents/model-input/sequence-breakers-blocked-every-stream.test.ts',
      'a breaker that crashes the tokenizer ends neither its own answer nor another stream',
    ],
  ),
  'B-6': tested(
    'Parts of a schema that the engine does not support were dropped without an error.',
    [
      'packages/core/src/grammar/schema/json-schema.test.ts',
      '$what is rejected with a specific error within 2 s',
    ],
    ['test/clients/openai-engine.test.ts', 'an unsupported schema gets a 400 that names the keyword'],
  ),
  'B-7': tested(
    'The chat template of a model ran code on the server.',
    ['test/incidents/model-input/chat-templates-ran-code.test.ts', '%s reaches no code'],
    ['test/local-engine/texts.test.ts', '%s is rejected, and a running answer continues'],
    [
      'test/incidents/tenants/slow-templates-of-one-tenant-stopped-every-chat.test.ts',
      'while two tenants render eight slow templates each, the first tokens of other tenants come soon',
    ],
  ),
  'B-8': tested(
    'Template arguments of a request replaced the template and blocked the server.',
    [
      'test/incidents/model-input/template-variables-blocked-the-server.test.ts',
      '%s in chat_template_kwargs change neither the prompt nor the answer',
    ],
    ['packages/core/src/template/jinja.test.ts', 'variables are available and do not override standard ones'],
  ),
  'B-9': tested(
    'The body `{}` ended the process.',
    [
      'test/incidents/model-input/empty-bodies-ended-the-server.test.ts',
      'every route answers every such body below 500, and the server answers the next call',
    ],
    [
      'test/fuzz/chat-request.test.ts',
      'each of 5,000 random chat requests gets a completion or an error within 2 s, without a memory leak',
    ],
    ['test/fuzz/ollama-request.test.ts', 'each of 1,000 random Ollama requests gets an answer or an error'],
  ),
  'B-10': tested(
    'An option loaded code from the repository of a model.',
    [
      'test/incidents/model-input/model-folders-brought-code.test.ts',
      'no code is built from text, and every import names its module',
    ],
    [
      'test/incidents/model-input/model-folders-brought-code.test.ts',
      'only model processes and their workers are started',
    ],
  ),
  'B-11': tested(
    'Saved states of the engine could be damaged, or could belong to another model.',
    [
      'test/local-engine/prompt-cache.test.ts',
      'if the state file is %s, the prompt is evaluated and cached again',
    ],
    [
      'test/local-engine/prompt-cache.test.ts',
      'swapped state files of two tenants are read for neither of them',
    ],
    [
      'test/local-engine/prompt-reuse.test.ts',
      'damaged or deleted state files change neither the answer nor the usage',
    ],
    [
      'test/local-engine/prompt-cache.test.ts',
      'are deleted by the next process after a kill, and the next call evaluates its whole prompt',
    ],
  ),

  // Processes, supervision and overload.
  'C-1': tested(
    'A signal to stop deadlocked a decoding engine, while its health route answered 200.',
    [
      'test/incidents/process/stopping-during-decode-hung.test.ts',
      'a model process is gone within 15 s of each of … stops at random moments of a stream',
    ],
    [
      'test/local-engine/stopped.test.ts',
      'ends its stream with an upstream error, and the next call is served',
    ],
    ['test/local-engine/stopped.test.ts', 'is not listed as ready while a call waits for it'],
  ),
  'C-2': tested('A server closed sockets after each stream although it had promised to keep them open.', [
    'test/incidents/process/reused-sockets-were-reset.test.ts',
    '1,000 streams of four clients share four sockets, and none is reset',
  ]),
  'C-3': tested(
    'An assertion in the native code ended the host process.',
    [
      'test/local-engine/faults.test.ts',
      'a kill of the model process during a stream gives an error frame, and the app and the next chat work',
    ],
    [
      'test/local-engine/crashes.test.ts',
      'gives an upstream error, and after two crashes is not loaded again until it changes',
    ],
    [
      'test/local-engine/kills.test.ts',
      'after … kills at random moments, all streams have ended as expected, calls work and nothing leaks',
    ],
  ),
  'C-4': tested('Loading a model blocked the event loop for minutes.', [
    'test/local-engine/faults.test.ts',
    'the event loop of the app stays free while a model loads and generates',
  ]),
  'C-5': tested(
    'Memory grew with each request.',
    [
      'test/incidents/process/apps-grew-with-every-request.test.ts',
      'after 10,000 calls with keys, limits and a ledger, the heap is as large as after 2,000',
    ],
    [
      'test/local-engine/short-calls.test.ts',
      '2,000 calls, 16 at a time, all succeed within the bounds for memory and event loop delay',
    ],
  ),
  'C-6': tested(
    'Queues grew without a limit.',
    [
      'test/incidents/tenants/queued-calls-waited-without-end.test.ts',
      'of 5,000 calls at once, 576 are answered in turn, and the others are rejected at once',
    ],
    [
      'test/incidents/tenants/one-tenant-kept-all-sequences.test.ts',
      'while endless answers %s fill all sequences, the first token of another tenant comes within twice its own time and a slice',
    ],
    [
      'test/incidents/tenants/one-tenants-embeddings-refused-every-chat.test.ts',
      'while one tenant has %s, another one chats, counts and embeds',
    ],
    ['test/conformance/faults.ts', 'a full queue is an error with `retry-after`'],
    [
      'packages/core/src/calls/metering.test.ts',
      'a full queue rejects the caller with the most queued calls, at no cost',
    ],
    [
      'packages/core/src/engine/local/supervisor/call-cap.test.ts',
      'the total size of requests is bounded, and a failed call frees its share',
    ],
  ),
  'C-7': tested('Batches made other calls slow, and were removed.', [
    'test/incidents/tenants/a-batch-slowed-every-chat.test.ts',
    'beside a batch of … items, all chats are answered, their first tokens come soon, and the batch waits for them',
  ]),
  'C-8': tested(
    'Clients that read or write slowly took all connections and memory.',
    [
      'test/incidents/tenants/slow-bodies-held-memory-and-sockets.test.ts',
      'slow bodies of many callers leave room for a small request of another one',
    ],
    ['test/conformance/faults.ts', 'a slow reader gets the whole answer and does not delay other calls'],
    [
      'test/incidents/tenants/slow-readers-took-every-place.test.ts',
      'the connection of a client that reads nothing is closed, and what it did not get is not charged',
    ],
    [
      'test/robustness/clients.test.ts',
      'for a client that does not read, generation pauses when the memory for its output is full, and its connection is closed',
    ],
    [
      'test/robustness/stalled-connections.test.ts',
      'a client that reads nothing of a whole answer is closed',
    ],
    ['test/robustness/clients.test.ts', 'a body that stops arriving gives a 408'],
    ['test/local-engine/faults.test.ts', 'a stream that the app does not read does not block other calls'],
  ),
  'C-9': tested(
    'The engine went on after its client had left.',
    ['test/conformance/faults.ts', 'a client that disconnects during a stream ends its generation'],
    ['test/conformance/faults.ts', 'a client that disconnects before the first token ends its generation'],
    [
      'test/local-engine/cancelling.test.ts',
      'an abort during prefill frees the slot within about three chunks',
    ],
    ['test/local-engine/cancelling.test.ts', 'a call aborted while all slots are in use never starts'],
    ['test/local-engine/cancelling.test.ts', 'a call aborted while its model loads ends before the load'],
    [
      'test/usage/aborts.test.ts',
      'covers only delivered tokens if the client aborts, and the other tokens are recorded as undelivered',
    ],
  ),
  'C-10': tested(
    'Clients gave up while a model loaded or evaluated a long prompt.',
    [
      'test/incidents/process/clients-gave-up-during-prefill.test.ts',
      'the SDK of %s gets an answer that begins after ten minutes, and bytes at least every 15 s',
    ],
    [
      'test/conformance/faults.ts',
      'a stream of a slowly loading model has headers after 5 s, heartbeats, and then the answer',
    ],
  ),
  'C-11': tested(
    'Limits and lifetimes broke when the clock of the machine jumped.',
    [
      'packages/core/src/limits/rate-limiter.test.ts',
      'a clock that is set back a day blocks no subject for a day',
    ],
    ['packages/core/src/limits/bucket.test.ts', 'is full after a minute, and no fuller after a day'],
    [
      'packages/core/src/limits/running-calls.test.ts',
      'running calls of this process count despite clock jumps, until they end',
    ],
    [
      'packages/core/src/accounts/usage/ledger.test.ts',
      'running calls keep their reservations when the clock jumps',
    ],
  ),
  'C-12': tested(
    'Two app processes with one data folder damaged each other.',
    [
      'test/incidents/process/two-apps-lost-each-others-rows.test.ts',
      'two processes with … calls each leave all rows and the exact cost, also for one caller',
    ],
    [
      'test/store/two-apps.test.ts',
      'apps that create, copy and delete models concurrently lose no models of each other',
    ],
    [
      'test/local-engine/shared.test.ts',
      'four apps that load a model at the same time share one model process',
    ],
  ),
  'C-13': tested('A balancer reused sockets that the server was closing.', [
    'test/incidents/process/balancers-reused-closed-sockets.test.ts',
    'the page on deployment sets both limits of the server beyond the 60 s of most balancers',
  ]),

  // Authentication, exposure and browsers.
  'D-1': tested(
    'Servers without authentication were open to the internet.',
    [
      'test/incidents/access/open-ports-sold-compute.test.ts',
      'without keys, a call from another address gets a 401, and one log line says what to set',
    ],
    ['test/conformance/manners.ts', 'without authentication, a call through a proxy gets a 401'],
    [
      'test/incidents/access/proxies-passed-for-this-machine.test.ts',
      'a call with any header of a proxy gets a 401 in each API',
    ],
    ['test/incidents/access/proxies-passed-for-this-machine.test.ts', 'a call over HTTP/1.0 gets a 401'],
  ),
  'D-2': tested('A web page called a local server under a host name of its own.', [
    'test/conformance/manners.ts',
    'a call with a foreign `Host` header gets a 403',
  ]),
  'D-3': tested(
    'A server allowed every web page to use the credentials of its visitor.',
    ['test/conformance/manners.ts', 'a web page from another origin gets a 403, and no model is called'],
    ['test/conformance/manners.ts', 'a preflight from another origin gets a 403'],
    [
      'test/incidents/access/pages-of-other-sites-used-the-session.test.ts',
      'a page of another origin gets a 403 in each API, and no model is called',
    ],
    [
      'test/incidents/access/pages-of-other-sites-used-the-session.test.ts',
      '`*` from the CORS middleware of the app allows no page',
    ],
  ),
  'D-4': tested('Keys were compared in a time that depends on their letters.', [
    'test/incidents/access/keys-were-compared-letter-by-letter.test.ts',
    'all keys with a right public id are compared in full, in constant time, as hashes of equal length',
  ]),
  'D-5': tested('A key was inserted into an SQL statement.', [
    'test/keys/hostile-keys.test.ts',
    '$path rejects hostile keys with 401',
  ]),
  'D-6': tested(
    'A key in one header skipped the restrictions that it has in the other.',
    ['test/incidents/access/one-header-skipped-the-limits.test.ts', '%s applies to every way to send a key'],
    [
      'test/incidents/access/one-header-skipped-the-limits.test.ts',
      'two different keys, or one key beside a wrong one, get a 401',
    ],
  ),
  'D-7': tested(
    'Members of one team managed the keys of another.',
    [
      'test/incidents/access/keys-without-the-scope-managed-others.test.ts',
      'a key with the scope inference gets a 403 from every route that manages models, keys or usage',
    ],
    [
      'test/responses/stored-responses.test.ts',
      'callers of another tenant find neither a response nor its items, nor a conversation',
    ],
  ),
  'D-8': tested('A field of the request chose the upstream server, which then got the key of the operator.', [
    'test/incidents/access/callers-chose-the-upstream.test.ts',
    '$path ignores fields and headers that name an upstream',
  ]),
  'D-9': tested('One huge header filled the memory.', [
    'test/keys/hostile-keys.test.ts',
    'Node rejects a header of one megabyte, and the next call succeeds',
  ]),
  'D-10': tested('Unknown paths were answered with 200.', [
    'test/incidents/access/unknown-routes-answered-200.test.ts',
    'each path answers other methods with a 405 that lists its own, and each other path with a 404',
  ]),
  'D-11': tested(
    'All IPv4 clients shared one rate limit, because their addresses were mapped to IPv6.',
    ['packages/core/src/limits/address.test.ts', '%s is %s'],
    ['packages/core/src/limits/address.test.ts', 'of an IPv6 address, the first %d bits are %s'],
    [
      'packages/koa/src/rate-limit.test.ts',
      'behind one proxy, a client cannot avoid its limit by writing the header itself',
    ],
  ),
  'D-12': tested('Helpers for tools and for other origins fetched any URL.', [
    'test/incidents/model-input/model-folders-brought-code.test.ts',
    'only the registry and the upstream engines send requests',
  ]),
  'D-13': due('Names and completions ran scripts in a web console.', 'console'),

  // Tenants, cache and billing.
  'E-1': tested(
    'The cache restored the conversation of somebody else.',
    [
      'test/local-engine/prompt-cache.random.test.ts',
      'gives … random calls the same answers as a caller without cached prompts',
    ],
    [
      'test/local-engine/prompt-reuse.test.ts',
      '… conversations reuse cached states, and get the same answers as cold runs',
    ],
    [
      'test/local-engine/prompt-cache.test.ts',
      'a tenant with a similar name reads nothing of another tenant’s cache',
    ],
  ),
  'E-2': tested(
    'The time of an answer showed what others had asked.',
    [
      'test/local-engine/prompt-cache.test.ts',
      'a caller reuses nothing of another caller’s prompt, and its latency does not reveal that prompt',
    ],
    ['test/local-engine/prompt-reuse.test.ts', 'a caller reuses nothing of another caller’s prompt'],
  ),
  'E-3': tested(
    'Parallel requests spent more than the budget.',
    [
      'test/usage/spending.test.ts',
      'admits ten of a hundred parallel streams across apps, and records their exact cost',
    ],
    [
      'test/usage/spending.test.ts',
      'loses no credit and charges no answer twice when an app is killed after %i answers',
    ],
    [
      'packages/core/src/accounts/usage/ledger.test.ts',
      'a hundred concurrent calls get what the limit pays for, to the nano-dollar',
    ],
  ),
  'E-4': tested(
    'Tokens of streams that were aborted were not charged.',
    [
      'test/usage/aborts.test.ts',
      'covers only delivered tokens if the client aborts, and the other tokens are recorded as undelivered',
    ],
    [
      'test/usage/spending.test.ts',
      'charges aborted streams for their output, and releases the rest of their reservations',
    ],
  ),
  'E-5': tested(
    'The key of an administrator had no limits.',
    [
      'test/limits/quiet-calls.test.ts',
      'a key with the scope admin has a separate bucket for admin requests',
    ],
    ['test/limits/quiet-calls.test.ts', 'a rate-limited admin request changes nothing'],
    [
      'packages/core/src/accounts/auth/access.test.ts',
      'a key has only its scopes: `admin` does not include `inference`',
    ],
  ),
  'E-6': tested('Negative numbers and races broke quotas.', [
    'test/incidents/tenants/quotas-went-below-zero.test.ts',
    'in any order of reservations and settlements, spending is exact and never above the limit',
  ]),
  'E-7': tested(
    'A batch was charged again after a restart.',
    [
      'test/incidents/process/a-restart-billed-a-batch-twice.test.ts',
      '… kills of the app during a batch of … items: each item has one result, and is charged once',
    ],
    [
      'test/incidents/process/a-restart-billed-a-batch-twice.test.ts',
      'a kill at each statement that stores a result: each item has one result, and is charged once',
    ],
    [
      'packages/core/src/accounts/usage/killed-calls.test.ts',
      'an item of a batch whose process is killed before its result is stored costs nothing',
    ],
  ),
  'E-8': tested(
    'Prompts and keys were written to logs.',
    [
      'test/secrets.test.ts',
      'calls of every kind leave no secret and no prompt in logs, files, databases or errors',
    ],
    ['test/admin/secrets.test.ts', 'no log message or response contains a secret ($name)'],
  ),

  // Streams, headers and packages.
  'F-1': tested('Text with line breaks became events of a stream.', [
    'test/incidents/streams/model-output-became-events.test.ts',
    '%s: text that looks like events stays text',
  ]),
  'F-2': tested(
    'Names with line breaks became headers.',
    [
      'test/incidents/streams/names-became-headers.test.ts',
      'model names, ids and user names with line breaks reach no header',
    ],
    [
      'test/incidents/streams/names-became-headers.test.ts',
      'only a well-formed x-request-id of the client is repeated',
    ],
  ),
  'F-3': tested(
    'Compression held streams back until their end.',
    ['packages/express/src/middleware.test.ts', 'a streamed chat arrives piece by piece, and uncompressed'],
    ['packages/koa/src/router.test.ts', 'a stream arrives piece by piece and uncompressed behind %s'],
    [
      'packages/nest/src/llm.module.test.ts',
      'a stream arrives piece by piece, with our headers, and uncompressed',
    ],
  ),
  'F-4': tested(
    'Characters that are split over tokens were broken.',
    [
      'test/incidents/streams/characters-broke-between-tokens.test.ts',
      'in the API of %s, emoji and CJK characters arrive whole, each with its last token',
    ],
    [
      'packages/core/src/engine/local/model-process/decoding/detokenize.test.ts',
      'no character is lost if a token ends one character and begins the next',
    ],
  ),
  'F-5': tested(
    'Malicious versions of a package and of an updater were installed.',
    [
      'test/incidents/streams/installs-ran-foreign-code.test.ts',
      'core and all adapters have at most … dependencies, direct and indirect, none with an install script',
    ],
    ['test/packaging/install.test.ts', 'installs without scripts, builds and serves'],
  ),
  'F-6': tested(
    'A dependency sent telemetry, and pages loaded scripts from other servers.',
    [
      'test/incidents/streams/installs-ran-foreign-code.test.ts',
      'every locked package comes from the npm registry, with its hash, and none is known for telemetry',
    ],
    [
      'test/incidents/model-input/model-folders-brought-code.test.ts',
      'only the registry and the upstream engines send requests',
    ],
  ),
  'F-7': tested(
    'Odd JSON changed prototypes or filled the stack.',
    ['packages/core/src/http/body.test.ts', '129 levels of %s are rejected'],
    [
      'packages/core/src/http/body.test.ts',
      'half a million objects are accepted, and more are rejected unparsed',
    ],
    [
      'test/fuzz/chat-request.test.ts',
      'each of 5,000 random chat requests gets a completion or an error within 2 s, without a memory leak',
    ],
    [
      'test/local-engine/bad-input.test.ts',
      'a lone surrogate gives the same prompt as a replacement character',
    ],
    [
      'test/incidents/model-input/empty-bodies-ended-the-server.test.ts',
      'every route answers every such body below 500, and the server answers the next call',
    ],
  ),
  'F-8': tested(
    'The host app had already parsed or limited the body.',
    ['packages/express/src/middleware.test.ts', '%s is answered by Express, with %i, behind express.json()'],
    [
      'packages/express/src/middleware.test.ts',
      'a body that earlier middleware consumed is rejected with a hint',
    ],
    ['packages/koa/src/router.test.ts', 'JSON is accepted %s bodyParser()'],
    ['packages/koa/src/router.test.ts', '%s is answered by Koa, with %i, behind bodyParser()'],
    ['packages/nest/src/llm.module.test.ts', 'a body of 200 kB %s'],
  ),
}
