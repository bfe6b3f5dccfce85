/** `modelmount serve`: options. */
import { Command, InvalidArgumentError, Option } from 'commander'
import { environmentHelp } from '../environment.ts'
import { parseHost } from '../host.ts'
import { splitList } from '../list.ts'
import type { ServeOptions } from '../serve-options.ts'
import { integer } from './options/integer.ts'

export const serve = new Command('serve')
  .alias('start')
  .description('serve local models over HTTP')
  .option('--host <host>', 'address to listen on (default: 127.0.0.1, or from $OLLAMA_HOST)')
  .option('--port <port>', 'port to listen on (default: 11434, or from $OLLAMA_HOST)', integer(0, 65_535))
  .option(
    '--config <file>',
    'file with options, as JSON or a JavaScript module; flags and the environment take precedence',
  )
  .addOption(
    new Option(
      '--auth <how>',
      'require an API key: see modelmount keys (default: serve callers on this machine only)',
    ).choices(['keys']),
  )
  .option('--access-log', 'log one line for each call, and when models are loaded and unloaded, on stderr')
  .option('--admin', 'serve the admin API under /admin, for keys with the scope admin')
  .option('--console', 'serve the console under /console; on this machine, a link that is printed logs in')
  .option('--metrics', 'serve metrics for Prometheus under /metrics, for keys with the scope admin:read')
  .option(
    '--metrics-port <port>',
    'serve metrics on a port of their own, without a key, to this machine only',
    integer(0, 65_535),
  )
  .option(
    '--data <location>',
    'folder with modelmount.db for keys, usage and batches, or postgres://… (default: the folder of models)',
  )
  .option(
    '--origins <list>',
    'further origins of web pages, separated by commas; * allows all (default: $OLLAMA_ORIGINS)',
    splitList,
  )
  .option('--no-auth', 'serve without authentication on a host that other machines can reach')
  .option('--models <folder>', 'folder with GGUF files (default: $OLLAMA_MODELS, else ~/.ollama/models)')
  .option('--model <file>', 'one GGUF file to serve; with --models, it comes before the folder')
  .option(
    '--adapter <file>',
    'LoRA adapter (GGUF) for --model; file.gguf=0.5 sets its scale; repeatable',
    adapter,
  )
  .option('--threads <count>', 'compute threads (default: one less than the cores)', integer(1, 1_024))
  .option(
    '--parallel <count>',
    'parallel answers per model (default: $OLLAMA_NUM_PARALLEL, else 4)',
    integer(1, 256),
  )
  .option(
    '--context <tokens>',
    'context size in tokens (default: $OLLAMA_CONTEXT_LENGTH, else 4096)',
    integer(16, 2 ** 24),
  )
  .option(
    '--max-context <tokens>',
    'largest context size that a call may request (default: the trained context size)',
    integer(16, 2 ** 24),
  )
  .option(
    '--max-loaded <count>',
    'models in memory at once (default: $OLLAMA_MAX_LOADED_MODELS, else 3)',
    integer(1, 1_024),
  )
  .option(
    '--max-queued <count>',
    'calls that may wait for each model (default: $OLLAMA_MAX_QUEUE, else 512)',
    integer(0, 1_000_000),
  )
  .option(
    '--queue-timeout <time>',
    'time limit of the wait of a call: 10m, seconds, or forever (default: 5m)',
    duration,
  )
  .option(
    '--keep-alive <time>',
    'idle timeout of a loaded model: 10m, seconds, or forever (default: $OLLAMA_KEEP_ALIVE, else 5m)',
    duration,
  )
  .option(
    '--reload-cooldown <time>',
    'how long a freshly loaded model serves before a call may reload or evict it: 10s, or seconds (default: 5s)',
    seconds,
  )
  .option(
    '--gpu-layers <count>',
    'layers on the GPU: a number, max, or auto for as many as fit (default: auto)',
    gpuLayers,
  )
  .addOption(
    new Option('--kv-type <type>', 'KV cache data type (default: $OLLAMA_KV_CACHE_TYPE, else f16)').choices([
      'f16',
      'q8_0',
      'q4_0',
    ]),
  )
  .option('--flash-attention', 'use flash attention (default: $OLLAMA_FLASH_ATTENTION, else where supported)')
  .option('--no-flash-attention', 'do not use flash attention')
  .option(
    '--upstream <name=url>',
    "further models NAME/… of another server: gpu=http://10.0.0.7:8000, with ollama+http://, anthropic+https:// or modelmount+http:// for other APIs than OpenAI's; several URLs, separated by commas, are a fleet; repeatable",
    another,
  )
  .option('--pass-env <name>', 'environment variable for model processes; repeatable', another)
  .option(
    '--registry <host>',
    'registry for pulls and pushes; repeatable (default: registry.ollama.ai, hf.co and huggingface.co)',
    another,
  )
  .option(
    '--private-registry <host>',
    'host:port of a registry at a private address, also over http with --insecure; repeatable',
    another,
  )
  .option('--store-max <size>', 'maximum size of models on disk, such as 100gb (default: no limit)', size)
  .option(
    '--prices <file>',
    'JSON file with dollars per million tokens by model, such as {"*": {"inputPerMillionUsd": 0.5, "outputPerMillionUsd": 2}}; * stands for all other models',
  )
  .option(
    '--drain <seconds>',
    'how long running answers may take to end after SIGTERM or Ctrl-C (default: 10)',
    integer(0, 3_600),
  )
  .addHelpText('after', environmentHelp('serve'))
  .action(async (options: Partial<ServeOptions>) => {
    if (givenAuthOptions.size > 1)
      throw new Error('--auth keys and --no-auth exclude each other: remove one of them.')
    const { host, port } = parseHost(process.env.OLLAMA_HOST ?? '')
    // Loaded on use, so that other commands start faster.
    const server = await import('../serve.ts')
    await server.serve({ host, port, ...options })
  })

/**
 * The auth options on the command line. If both `--auth keys` and `--no-auth` are given, commander keeps only
 * the last one, which could turn authentication off.
 */
const givenAuthOptions = new Set<string>()
for (const option of ['auth', 'no-auth']) serve.on(`option:${option}`, () => givenAuthOptions.add(option))

/** Appends a LoRA adapter to those of earlier `--adapter` options. */
function adapter(text: string, before: ServeOptions['adapter'] = []): NonNullable<ServeOptions['adapter']> {
  const [, file = text, scale = '1'] = /^(.+\.gguf)=(.*)$/.exec(text) ?? []
  if (scale.trim() !== '' && Number.isFinite(Number(scale)))
    return [...before, { file, scale: Number(scale) }]
  throw new InvalidArgumentError('Expected a file, or a file and its scale, such as file.gguf=0.5.')
}

function gpuLayers(text: string): number | 'auto' | 'max' {
  if (text === 'auto' || text === 'max') return text
  if (/^\d{1,4}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Expected a whole number, max or auto.')
}

/** As in Ollama, a negative number means forever. */
function duration(text: string): NonNullable<ServeOptions['keepAlive']> {
  return text.startsWith('-') ? 'forever' : seconds(text)
}

/** As in Ollama, a number without a unit means seconds. */
function seconds(text: string): NonNullable<ServeOptions['reloadCooldown']> {
  return /^\d+$/.test(text) ? `${Number(text)}s` : (text as `${number}s`)
}

function another(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}

/** A number without a unit means bytes. */
function size(text: string): NonNullable<ServeOptions['storeMax']> {
  return /^\d+$/.test(text) ? Number(text) : (text as `${number}gb`)
}
