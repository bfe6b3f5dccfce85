/** Flags of llama-server, as the server's tests pass them. */

/** Flags that Modelmount has no equivalent for, and that do not change what the remaining tests check. */
const ignored = {
  values: ['batch-size', 'ubatch-size', 'fa', 'reasoning-format', 'host', 'cache-ram'],
  switches: ['cont-batching', 'embedding', 'jinja', 'no-jinja', 'no-slots', 'offline', 'reranking', 'slots'],
} as const
const values = [
  ...['alias', 'api-key', 'chat-template', 'chat-template-file', 'cors-origins', 'ctx-size', 'model'],
  ...['n-predict', 'parallel', 'pooling', 'port', 'reasoning', 'seed', 'temp'],
] as const
const switches = ['kv-unified', 'verbose'] as const

export type Flags = Readonly<Record<string, string | undefined>>

/** Returns the value of each flag by its name. A switch has an empty text. An unknown flag is an error. */
export function parseFlags(args: readonly string[]): Flags {
  const flags: Record<string, string> = {}
  for (let index = 0; index < args.length; index++) {
    const name = args[index]?.replace(/^--?/, '') ?? ''
    if (includes([...switches, ...ignored.switches], name)) flags[name] = ''
    else if (includes([...values, ...ignored.values], name)) flags[name] = args[++index] ?? ''
    else throw new Error(`Modelmount has no equivalent of the flag ${args[index]}.`)
  }
  return flags
}

const includes = (names: readonly string[], name: string): boolean => names.includes(name)
