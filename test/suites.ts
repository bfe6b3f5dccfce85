/**
 * The command that runs each test suite. A suite that is not listed in this file runs in `npm test`.
 * Paths are glob patterns from the repository root. Each entry has its reason.
 */

/** Slow and special suites: the command that runs each suite, and the reason. */
const suites: Readonly<Record<string, readonly [command: 'npm test' | '.ci/run', why: string]>> = {
  // `npm test` runs the quick suites with the real engine.
  'test/local-engine/answers.test.ts': ['npm test', 'generation: chat, raw text, limits, stop sequences'],
  'test/local-engine/bad-input.test.ts': ['npm test', 'validation before the model process'],
  'test/local-engine/cancelling.test.ts': ['npm test', 'aborts'],
  'test/local-engine/crashes.test.ts': ['npm test', 'recovery from crashes'],
  'test/local-engine/logprobs.test.ts': ['npm test', 'log probabilities'],
  'test/local-engine/lora.test.ts': ['npm test', 'LoRA adapters'],
  'test/local-engine/overflow.test.ts': ['npm test', 'context overflow'],
  'test/local-engine/parallel.test.ts': ['npm test', 'sequences decoded in one batch'],
  'test/local-engine/prompts.test.ts': ['npm test', 'chat templates and raw prompts'],
  'test/local-engine/queue.test.ts': ['npm test', 'turns and time limit of queued calls'],
  'test/local-engine/speculation.test.ts': ['npm test', 'guessed tokens'],
  'test/local-engine/tools.test.ts': ['npm test', 'tool calls'],
  'test/usage/real-engine.test.ts': ['npm test', 'usage of real calls'],

  // `.ci/run` runs these after `npm test`.
  'packages/cli/src/doctor/doctor.test.ts': [
    '.ci/run',
    'the checks of modelmount doctor in separate processes',
  ],
  'packages/cli/src/bin.test.ts': ['.ci/run', 'each command in a separate process'],
  'packages/cli/src/{db/db,accounts/keys,accounts/metered,accounts/tenants}.test.ts': [
    '.ci/run',
    'commands for keys, usage, tenants and the database in separate processes',
  ],
  'test/running-calls/running-calls.test.ts': ['.ci/run', 'running calls of two processes, each second'],
  'test/console/mounts.test.ts': ['.ci/run', 'the console in each framework'],
  'test/golden/replay.test.ts': ['.ci/run', 'all recorded exchanges with the real engine'],
  'test/ai-sdk/version-7.test.ts': ['.ci/run', 'installs the AI SDK and Node 22 from a registry'],
  'test/docs/start.test.ts': ['.ci/run', 'runs the apps of the first pages with a model'],
  'test/docs/site.test.ts': ['.ci/run', 'builds the site of the documentation, half a minute'],
  'test/docs/types.test.ts': ['.ci/run', 'checks the types of the code on all pages, seconds of TypeScript'],
  'test/responses/*.test.ts': [
    '.ci/run',
    'stored responses of several apps, which look for deletions every 3 s',
  ],
  'test/console/browser/*.test.ts': ['.ci/run', 'pages of the console in Chromium'],
  'test/shutdown/drained-streams.test.ts': ['.ci/run', 'seconds of draining on each mount'],
  'test/tools/*.test.ts': ['.ci/run', 'installs bundlers, runners, Jest and Hono from a registry, a sample'],
  'test/upstream/{anthropic,ollama}.test.ts': [
    '.ci/run',
    'calls through a second app, over the APIs that fewer servers have',
  ],
  'examples/{batch-classification,interceptors,koa,modelfile,nest,observability,retrieval,saas-keys,structured-extraction,team-server,testing,tool-agent,use-chat}/server.test.js':
    ['.ci/run', 'starts and ends of servers: those of express and fastify are enough for `npm test`'],
  'test/toy-dialect.test.ts': ['.ci/run', 'compiles core with one more dialect'],
  'packages/cli/src/serve-config.test.ts': [
    '.ci/run',
    'the configuration file, SIGHUP and PostgreSQL URLs in separate processes',
  ],
  'packages/cli/src/{serve-batches,batch/batch}.test.ts': [
    '.ci/run',
    'batches through commands in separate processes',
  ],
  'packages/core/src/batches/lifecycle.test.ts': ['.ci/run', 'seconds until leases expire'],
  'packages/cli/src/session.test.ts': [
    '.ci/run',
    'each command of a session with a model process, with and without a server',
  ],
  'test/limits/redis/*.test.ts': [
    '.ci/run',
    'a real Redis that is killed and stopped, 20 s of four processes',
  ],
  'test/metrics/prometheus.test.ts': ['.ci/run', 'a real Prometheus, seconds of calls and scrapes'],
  'test/clients/*.test.ts': ['.ci/run', 'every SDK against every mount; Python needs a package index'],
  'test/clients/agents/sdks.test.ts': ['.ci/run', 'installs SDKs and Node 22 from a registry, a sample'],
  'test/fuzz/*.test.ts': ['.ci/run', 'random requests and GGUF files'],
  'test/templates/templates.test.ts': ['.ci/run', 'all templates of llama.cpp in both renderers'],
  'test/grammar/random-schemas.test.ts': ['.ci/run', 'random schemas, a sample'],
  'test/incidents/model-input/one-long-word-ended-every-stream.test.ts': [
    '.ci/run',
    'words of 30,000 letters in crashing tokenizers',
  ],
  'test/incidents/model-input/sequence-breakers-blocked-every-stream.test.ts': [
    '.ci/run',
    'measured: pauses of a stream during hostile requests',
  ],
  'test/incidents/store/pulls-ignored-the-proxy.test.ts': ['.ci/run', 'app processes behind a proxy'],
  'test/incidents/database/a-stopped-process-held-a-row.test.ts': [
    '.ci/run',
    'seconds until PostgreSQL ends the transaction of a stopped process',
  ],
  'test/incidents/{access/one-header,store/a-name,streams/model-output}*.test.ts': [
    '.ci/run',
    'each API with each restriction, resolver and SDK',
  ],
  'test/incidents/model-input/{empty,schemas,template-variables}*.test.ts': [
    '.ci/run',
    'hostile bodies for every route, hostile constraints with the real engine',
  ],
  'test/incidents/process/!(balancers-reused-closed-sockets|a-throwing-logger-cut-streams).test.ts': [
    '.ci/run',
    'measured: thousands of calls, two app processes, stops of model processes',
  ],
  'test/incidents/streams/characters-broke-between-tokens.test.ts': [
    '.ci/run',
    'split characters of a real model',
  ],
  'test/incidents/tenants/a-batch-slowed-every-chat.test.ts': [
    '.ci/run',
    'measured: first tokens beside a batch of 1,000 items',
  ],
  'test/incidents/tenants/one-tenant-kept-all-sequences.test.ts': [
    '.ci/run',
    'measured: seconds of endless answers',
  ],
  'test/incidents/access/wrong-keys-were-tried-without-end.test.ts': [
    '.ci/run',
    'wrong keys on every mount, in both databases',
  ],
  'test/incidents/tenants/a-deleted-tenant-left-its-data.test.ts': [
    '.ci/run',
    'data of tenants with a real model, in both databases',
  ],
  'test/storage/schemas.test.ts': ['.ci/run', 'databases of each earlier version'],
  'test/keys/revoked.test.ts': ['.ci/run', 'revocation across processes, seconds of waiting'],
  'test/packaging/!(start).test.ts': ['.ci/run', 'installs packages from a registry'],
  'test/registry/*.test.ts': ['.ci/run', 'transfers with a real registry'],
  'test/robustness/*.test.ts': ['.ci/run', 'measured: clients that misbehave, missing weights'],
  'test/store/*.test.ts': ['.ci/run', 'several processes and full disks'],
  'test/batches/kills-in-postgres.test.ts': ['.ci/run', 'kills during batches, a sample'],
  'test/batches/kills-in-sqlite.test.ts': ['.ci/run', 'kills during batches, a sample'],
  'test/usage/kills-in-postgres.test.ts': ['.ci/run', 'kills of apps and model processes, a sample'],
  'test/usage/kills-in-sqlite.test.ts': ['.ci/run', 'kills of apps and model processes, a sample'],
  'test/usage/database-away.test.ts': ['.ci/run', 'PostgreSQL that is away until leases expire'],
  'test/usage/spending.test.ts': ['.ci/run', 'spending across processes and databases'],
  'test/incidents/store/locked-databases-were-server-errors.test.ts': ['.ci/run', 'seconds of a lock'],
  'test/incidents/tenants/one-caller-reloaded-the-model-for-all.test.ts': [
    '.ci/run',
    'load options of callers without the scope models, minimum time between reloads',
  ],
  'test/incidents/tenants/one-tenants-embeddings-refused-every-chat.test.ts': [
    '.ci/run',
    'seconds of embedding calls that fill the bounds of the engine',
  ],
  'test/incidents/tenants/slow-bodies-held-memory-and-sockets.test.ts': [
    '.ci/run',
    'seconds of slow clients',
  ],
  'test/incidents/tenants/slow-templates-of-one-tenant-stopped-every-chat.test.ts': [
    '.ci/run',
    'measured: first tokens beside slow templates and long texts',
  ],
  'test/local-engine/agents.test.ts': ['.ci/run', 'one conversation of twenty turns'],
  'test/local-engine/fair-shares.test.ts': ['.ci/run', 'tenants that share one sequence'],
  'test/local-engine/faults.test.ts': ['.ci/run', 'measured: faults of model processes'],
  'test/local-engine/forged.test.ts': ['.ci/run', 'forged GGUF files, a sample'],
  'test/local-engine/full-machine.test.ts': ['.ci/run', 'several apps without memory for all their models'],
  'test/local-engine/go-templates.test.ts': [
    '.ci/run',
    'measured: templates in Go text/template, in all three dialects',
  ],
  'test/local-engine/constrained.test.ts': ['.ci/run', 'structured output, a sample of random schemas'],
  'test/local-engine/embeddings.test.ts': ['.ci/run', 'embeddings, tokenization, infill'],
  'test/local-engine/loading.test.ts': ['.ci/run', 'load, keep-alive, unload'],
  'test/local-engine/health.test.ts': ['.ci/run', 'kills and hangs, a time limit each'],
  'test/local-engine/hostile-neighbours.test.ts': ['.ci/run', 'measured: costly grammars during streams'],
  'test/local-engine/kills.test.ts': ['.ci/run', 'measured: kills, a sample'],
  'test/local-engine/memory.test.ts': ['.ci/run', 'contexts that do not fit'],
  'test/local-engine/pre-tokenizers.test.ts': ['.ci/run', 'long words with every pre-tokenizer, a sample'],
  'test/local-engine/prompt-cache.test.ts': ['.ci/run', 'prompt cache, 40 s of long prompts'],
  'test/local-engine/prompt-cache.random.test.ts': ['.ci/run', 'random calls and kills, a sample'],
  'test/local-engine/prompt-reuse.test.ts': [
    '.ci/run',
    'answers with and without cached prompts in three kinds of models, a sample',
  ],
  'test/local-engine/slow-readers.test.ts': ['npm test', 'answers that are read later than generated'],
  'test/local-engine/settings.test.ts': ['.ci/run', 'one model process for each set of options'],
  'test/local-engine/several-models.test.ts': ['.ci/run', 'several model processes side by side'],
  'test/local-engine/shared.test.ts': ['.ci/run', 'several apps with one model process'],
  'test/local-engine/shares-of-keys.test.ts': ['.ci/run', 'seconds of ten keys beside one key'],
  'test/local-engine/stopped.test.ts': [
    '.ci/run',
    'measured: model processes that are stopped, a time limit each',
  ],
  'test/local-engine/streams.test.ts': ['.ci/run', 'random streams, a sample'],
  'test/local-engine/templates.test.ts': ['.ci/run', 'templates in native code, a time limit each'],
  'test/local-engine/texts.test.ts': ['.ci/run', 'measured: hostile texts and templates, a time limit each'],
  'test/local-engine/untidy-apps.test.ts': ['.ci/run', 'apps that end without closing'],
}

/** Suites that `.ci/run` runs after `npm test`. */
export const ciSuites: readonly string[] = Object.entries(suites).flatMap(([file, [command]]) =>
  command === '.ci/run' ? [file] : [],
)

/**
 * Conformance tables of all mounts except Node's server. `npm test` runs the rows whose outcome depends on
 * the framework. `.ci/run` runs each other row on one of the mounts, and the long run on all.
 */
export const otherMounts = 'test/conformance/{express,express-4,fastify,fetch,koa,nest,nest-fastify}.test.ts'

interface LongSuite {
  /** Argument of `npm run test:long -- <part>`. */
  readonly part:
    | 'kills'
    | 'kills-in-sqlite'
    | 'kills-in-postgres'
    | 'batches-in-sqlite'
    | 'batches-in-postgres'
    | 'random'
    | 'storms'
    | 'tools'
    | 'mounts'
    | 'packaging'
    | 'examples'
    | 'agents'
    | 'peers'
    | 'upstreams'
    | 'fleet'
    | 'gpu'
    | 'operations'
  /** What the suite tries in the long run. */
  readonly tries: string
  /** What the other commands try of it. Without a sample, they do not run the suite. */
  readonly sample?: string
}

/** Suites of `npm run test:long`. */
export const longSuites: Readonly<Record<string, LongSuite>> = {
  'packages/core/src/grammar/schema/numbers.test.ts': {
    part: 'random',
    tries: '1,000 ranges',
    sample: '300',
  },
  'test/grammar/random-schemas.test.ts': { part: 'random', tries: '5,000 schemas', sample: '150' },
  'test/local-engine/constrained.test.ts': {
    part: 'random',
    tries: '300 schemas and 100 tools',
    sample: '40 and 8',
  },
  'test/local-engine/forged.test.ts': { part: 'random', tries: '187 forged files', sample: '12' },
  'test/local-engine/pre-tokenizers.test.ts': {
    part: 'random',
    tries: '90 names with 55 texts',
    sample: '11 with 8',
  },
  'test/local-engine/prompt-cache.random.test.ts': {
    part: 'random',
    tries: '1,600 random cache histories, 600 calls of a model, 20 kills',
    sample: '80, 20 and 3',
  },
  'test/local-engine/prompt-reuse.test.ts': {
    part: 'random',
    tries: '26 prompt lengths, 50 conversations, 48 seeds, 48 prompts',
    sample: '5, 8, 8 and 6',
  },
  'test/incidents/process/stopping-during-decode-hung.test.ts': {
    part: 'kills',
    tries: '200 stops during an answer',
    sample: '6',
  },
  'test/incidents/process/two-apps-lost-each-others-rows.test.ts': {
    part: 'storms',
    tries: '4,000 calls of each of two processes, in SQLite and PostgreSQL',
    sample: '400',
  },
  'test/local-engine/kills.test.ts': { part: 'kills', tries: '200 kills', sample: '8' },
  'test/usage/kills-in-sqlite.test.ts': {
    part: 'kills-in-sqlite',
    tries: '500 kills of an app or its model process during streams',
    sample: '9',
  },
  'test/usage/kills-in-postgres.test.ts': {
    part: 'kills-in-postgres',
    tries: '500 kills of an app or its model process during streams',
    sample: '9',
  },
  'test/batches/kills-in-sqlite.test.ts': {
    part: 'batches-in-sqlite',
    tries: '60 kills of an app or its model process during batches of 1,000 items',
    sample: '6 during 60 items',
  },
  'test/batches/kills-in-postgres.test.ts': {
    part: 'batches-in-postgres',
    tries: '60 kills of one of three apps or their model process during batches of 1,000 items',
    sample: '6 during 60 items',
  },
  'test/incidents/process/a-restart-billed-a-batch-twice.test.ts': {
    part: 'batches-in-sqlite',
    tries: '50 kills of an app during batches of 500 items',
    sample: '4 during 40 items',
  },
  'test/registry/kills.test.ts': {
    part: 'kills',
    tries: '10 kills of a pull of 500 MB',
    sample: '3 of 150 MB',
  },
  'test/limits/four-processes.test.ts': {
    part: 'storms',
    tries: '4,000 requests of four processes on one limit, in SQLite and PostgreSQL',
  },
  'test/local-engine/short-calls.test.ts': {
    part: 'storms',
    tries: 'soak: 4,000 calls, 16 at a time, with bounds for memory and event loop',
  },
  'test/long/storm.test.ts': { part: 'storms', tries: 'twenty tenants of mixed behaviour for ten minutes' },
  'test/local-engine/streams.test.ts': {
    part: 'random',
    tries: '200 streams of each of five routes',
    sample: '16',
  },
  [otherMounts]: {
    part: 'mounts',
    tries: 'all rows of the conformance table on each mount',
    sample: 'rows that depend on the framework, and each other row on one mount',
  },
  'test/tracing/collector.test.ts': {
    part: 'operations',
    tries: 'a collector of OpenTelemetry, which Go builds in minutes',
  },
  'test/clients/agents/sdks.test.ts': {
    part: 'agents',
    tries: 'SDKs in JavaScript, and the AI SDK in versions 6 and 7',
    sample: 'version 7',
  },
  'test/clients/agents/python.test.ts': {
    part: 'agents',
    tries: "SDKs in Python, and LangChain's standard tests",
  },
  'test/clients/agents/commands.test.ts': {
    part: 'agents',
    tries: 'Codex, opencode, Continue and Claude Code, 1.3 GB of packages',
  },
  'test/metrics/prometheus.test.ts': {
    part: 'operations',
    tries: 'metrics in a real Prometheus, compared with those of clients that send calls for 25 s',
    sample: 'calls for 2 s, counts only',
  },
  'test/packaging/install.test.ts': {
    part: 'packaging',
    tries: 'a fresh clone with npm 10 and 11',
    sample: 'npm 10',
  },
  'test/packaging/managers.test.ts': {
    part: 'packaging',
    tries: 'all packed packages with npm, pnpm, Yarn 1 and Yarn 4, without scripts',
    sample: 'pnpm',
  },
  'test/packaging/tarballs.test.ts': {
    part: 'packaging',
    tries: 'the packed packages on four versions of Node',
    sample: 'the oldest and the newest',
  },
  'test/examples/standalone.test.ts': {
    part: 'examples',
    tries: 'each example in an empty folder: npm install from the packed packages, and npm test',
  },
  'test/deploy/cluster.test.ts': {
    part: 'operations',
    tries: "the recipe for Node's cluster: one model process, a killed worker, SIGTERM during streams",
  },
  'test/deploy/dockerfile.test.ts': {
    part: 'operations',
    tries: 'the Dockerfile in an empty root of Debian: build, health check, SIGTERM during a stream',
  },
  'test/deploy/nginx.test.ts': {
    part: 'operations',
    tries: "the recipe for nginx in Debian's nginx: streams, clients that leave, large bodies, addresses",
  },
  'test/deploy/systemd.test.ts': {
    part: 'operations',
    tries: 'the unit in systemd-analyze, and the system calls of a server with a loaded model',
  },
  'test/peers/llama-server.test.ts': {
    part: 'peers',
    tries: "the tests of llama.cpp's server, with llama-server and with Modelmount",
  },
  'test/upstream/llama-server.test.ts': {
    part: 'upstreams',
    tries: "an app whose engine is llama.cpp's server",
  },
  'test/long/fleet.test.ts': {
    part: 'fleet',
    tries:
      'four replicas of the built-in model: 200 conversations, and a replica killed every 20 s for five minutes',
  },
  'test/bench/gpu-scripts.test.ts': {
    part: 'gpu',
    tries: 'the benchmark of graphics cards on the processor: packing, building llama.cpp, comparing',
  },
  'test/upstream/conformance/{openai,anthropic,ollama,modelmount}.test.ts': {
    part: 'upstreams',
    tries: 'the conformance table with an upstream engine, over each API',
  },
  'test/upstream/llama-server-images.test.ts': {
    part: 'upstreams',
    tries: "images for llama.cpp's server with a projector",
  },
  'test/tools/bundlers.test.ts': { part: 'tools', tries: 'esbuild and webpack', sample: 'esbuild' },
  'test/tools/fetch-frameworks.test.ts': { part: 'tools', tries: 'Hono and Next.js', sample: 'Hono' },
  'test/tools/jest.test.ts': { part: 'tools', tries: 'Jest on Node 20, 22 and 24', sample: 'on Node 20' },
  'test/tools/runners.test.ts': {
    part: 'tools',
    tries: 'node --watch, tsx watch and PM2',
    sample: 'node --watch',
  },
}

/**
 * Tests of examples that are not in the workspace, since their packages are large. `npm run test:long -- examples`
 * installs and runs them. `test/examples/nest-production.test.ts` runs one of them in Vitest.
 */
export const installedSuites: readonly string[] = [
  'examples/nest-production/*.test.ts',
  'examples/nextjs/server.test.js',
]

/** Suites that measure time or memory, or that keep both cores busy: no other suite runs at the same time. */
export const aloneSuites: readonly string[] = [
  'test/incidents/model-input/sequence-breakers-blocked-every-stream.test.ts',
  'test/incidents/tenants/slow-templates-of-one-tenant-stopped-every-chat.test.ts',
  'test/robustness/*.test.ts',
  'test/incidents/tenants/one-tenant-kept-all-sequences.test.ts',
  ...[
    ...['cancelling', 'crashes', 'faults', 'go-templates', 'hostile-neighbours', 'kills', 'parallel'],
    ...['short-calls', 'stopped', 'texts'],
  ].map((name) => `test/local-engine/${name}.test.ts`),
  'test/metrics/prometheus.test.ts',
  'test/usage/kills-in-sqlite.test.ts',
  'test/usage/kills-in-postgres.test.ts',
  'test/batches/kills-in-sqlite.test.ts',
  'test/batches/kills-in-postgres.test.ts',
  'test/incidents/tenants/a-batch-slowed-every-chat.test.ts',
]

/**
 * Suites that share worker processes, which saves the start of a process for each. Those with native code of the
 * engine, a model process or module mocks do not, since the code can crash, models compute beside the tests and the
 * mocks come too late, nor those that measure time or collect garbage.
 */
export const unitSuites: readonly string[] = [
  'packages/{ai-sdk,cli,console,express,fastify,koa,nest}/{src,web}/**/*.test.ts',
  'packages/core/src/*.test.ts',
  'packages/core/src/!(engine|storage)/**/*.test.ts',
  'packages/core/src/engine/{,local/ipc/,local/model-process/{kv-cache,speculation}/}*.test.ts',
  'packages/core/src/engine/{fleet,upstream}/**/*.test.ts',
  'packages/core/src/engine/local/model-process/decoding/!(token-text).test.ts',
  'packages/core/src/engine/local/model-process/prompt/!(tokenizer).test.ts',
  'test/{admin,grammar,health,limits,storage,templates,upstream}/*.test.ts',
  'test/conformance/!(express-4).test.ts',
  'test/keys/!(opening).test.ts',
  'test/incidents/{access,database,store}/!(keys-were-compared-letter-by-letter).test.ts',
]
