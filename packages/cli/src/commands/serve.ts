/** `modelmount serve`: what can be said, and what it means. */
import { Command, InvalidArgumentError, Option } from 'commander'
import { parseHost } from '../host.ts'
import type { ServeOptions } from '../serve.ts'

export const serve = new Command('serve')
  .alias('start')
  .description('serve local models over HTTP')
  .option('--host <host>', 'address to listen on (default: 127.0.0.1, or from $OLLAMA_HOST)')
  .option('--port <port>', 'port to listen on (default: 11434, or from $OLLAMA_HOST)', wholeNumber(0, 65_535))
  .addOption(
    new Option(
      '--auth <how>',
      'let in who has a key: see modelmount keys (default: who is on this machine)',
    ).choices(['keys']),
  )
  .option('--admin', 'manage keys over HTTP, too, under /admin: for keys with the scope admin')
  .option('--data <folder>', 'folder with modelmount.db, which has the keys (default: that of the models)')
  .option('--no-auth', 'ask nobody for a key; needed for a host that others can reach')
  .option('--models <folder>', 'folder with GGUF files (default: $OLLAMA_MODELS, else ~/.ollama/models)')
  .option('--model <file>', 'one GGUF file to serve, without a folder or before it')
  .option(
    '--adapter <file>',
    'a LoRA adapter (GGUF) for the model of --model, file.gguf=0.5 for half of it; may be said several times',
    adapter,
  )
  .option(
    '--threads <count>',
    'compute threads (default: one less than there are cores)',
    wholeNumber(1, 1_024),
  )
  .option(
    '--parallel <count>',
    'answers side by side (default: $OLLAMA_NUM_PARALLEL, else 4)',
    wholeNumber(1, 256),
  )
  .option(
    '--context <tokens>',
    'context size (default: $OLLAMA_CONTEXT_LENGTH, else 4096)',
    wholeNumber(16, 2 ** 24),
  )
  .option(
    '--max-context <tokens>',
    'the most that a call may ask for (default: what the model was trained for)',
    wholeNumber(16, 2 ** 24),
  )
  .option(
    '--max-loaded <count>',
    'models in memory at the same time (default: $OLLAMA_MAX_LOADED_MODELS, else 3)',
    wholeNumber(1, 1_024),
  )
  .option(
    '--keep-alive <time>',
    'how long an unused model stays loaded: 10m, seconds, or forever (default: $OLLAMA_KEEP_ALIVE, else 5m)',
    keepAlive,
  )
  .option(
    '--gpu-layers <count>',
    'layers on the graphics card: a number, max, or auto for as many as fit (default: auto)',
    gpuLayers,
  )
  .addOption(
    new Option(
      '--kv-type <type>',
      'how a context is kept (default: $OLLAMA_KV_CACHE_TYPE, else f16)',
    ).choices(['f16', 'q8_0', 'q4_0']),
  )
  .option('--flash-attention', 'compute with it (default: $OLLAMA_FLASH_ATTENTION, else where possible)')
  .option('--no-flash-attention', 'compute without it')
  .option(
    '--registry <host>',
    'a registry that models may be pulled from; may be said several times (default: registry.ollama.ai, hf.co and huggingface.co)',
    another,
  )
  .option(
    '--private-registry <host>',
    'host:port of a registry at a private address, which --insecure may reach by http; may be said several times',
    another,
  )
  .option(
    '--store-max <size>',
    'the most that models on disk may take, such as 100gb (default: no limit)',
    size,
  )
  .option('--prices <file>', 'JSON with what a million tokens of each model cost, in dollars')
  .action(async (options: Partial<ServeOptions>) => {
    if (saidOfAuth.size > 1) throw new Error('--auth keys and --no-auth are opposites: say one of them.')
    const { host, port } = parseHost(process.env.OLLAMA_HOST ?? '')
    // Other commands start faster without it.
    const server = await import('../serve.ts')
    await server.serve({ host, port, ...options })
  })

/** Of two options with one value the last would win, and a server that was to ask for keys ask nobody. */
const saidOfAuth = new Set<string>()
for (const option of ['auth', 'no-auth']) serve.on(`option:${option}`, () => saidOfAuth.add(option))

function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
    if (value >= least && value <= most) return value
    throw new InvalidArgumentError(`Expected a whole number from ${least} to ${most}.`)
  }
}

/** Behind those that were said before. */
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

/** As in Ollama: a bare number is seconds, and what is negative means for ever. */
function keepAlive(text: string): NonNullable<ServeOptions['keepAlive']> {
  if (text.startsWith('-')) return 'forever'
  return /^\d+$/.test(text) ? `${Number(text)}s` : (text as `${number}m`)
}

function another(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}

/** A bare number is bytes. */
function size(text: string): NonNullable<ServeOptions['storeMax']> {
  return /^\d+$/.test(text) ? Number(text) : (text as `${number}gb`)
}
