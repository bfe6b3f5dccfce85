/** Rereads the files of `--config` and `--prices` at SIGHUP, and applies what can change while serving. */
import { closeSync, openSync } from 'node:fs'
import { inspect } from 'node:util'
import { checkOptions, type Llm, type LlmOptions } from '@modelmount/core'
import { nameFlags, withFlags } from '../flags.ts'
import { logToStderr } from '../output.ts'
import { type ServeFiles, type ServeOptions, toLlmOptions } from '../serve-options.ts'
import { isFromFile, readFiles } from './files.ts'

/** Without these files, SIGHUP ends the server, as by default. */
export function rereadAtHangup(llm: Llm, flags: ServeOptions, files: ServeFiles): void {
  const names = [flags.config, flags.prices].filter((name) => name !== undefined).join(' and ')
  if (names === '') return
  const started = toLlmOptions(flags, files)
  let current = started
  let rereading = Promise.resolve()
  const reread = async (): Promise<void> => {
    try {
      const next = await readOptions(flags)
      const changes = changedOptions(current, next)
      const live = changes.filter(isLive)
      llm.configure(Object.fromEntries(live.map((name) => [name, next[name] ?? {}])))
      current = next
      log(
        `Reread ${names}: ${live.length > 0 ? `changed ${live.join(' and ')}` : 'prices, tiers and aliases are the same'}.`,
      )
      for (const name of changedOptions(started, next).filter((name) => !isLive(name)))
        log(
          `\`${name}\` in ${flags.config} changes at the next start. Only prices, tiers and aliases change while serving.`,
        )
    } catch (error) {
      log(`Reread ${names}: kept the earlier settings. ${withFlags((error as Error).message)}`)
    }
  }
  const hadTerminal = process.stdin.isTTY || process.stdout.isTTY
  process.on('SIGHUP', () => {
    // A terminal that closes sends the same signal. The server then ends as it does without these files.
    if (hadTerminal && !hasTerminal()) process.kill(process.pid, 'SIGTERM')
    else rereading = rereading.then(reread)
  })
}

/** Throws for files that the server could not start with. */
async function readOptions(flags: ServeOptions): Promise<LlmOptions> {
  const files = await readFiles(flags)
  const options = toLlmOptions(flags, files)
  try {
    checkOptions(options)
    return options
  } catch (error) {
    return nameFlags(error as Error, flags.config, isFromFile(files, flags))
  }
}

const isLive = (name: keyof LlmOptions): name is 'prices' | 'tiers' | 'aliases' =>
  name === 'prices' || name === 'tiers' || name === 'aliases'

/** A module that is read again creates its functions again, so functions are equal by name. */
const changedOptions = (before: LlmOptions, after: LlmOptions): readonly (keyof LlmOptions)[] =>
  (Object.keys({ ...before, ...after }) as (keyof LlmOptions)[])
    .filter((name) => describe(before[name]) !== describe(after[name]))
    .sort()

const describe = (value: unknown): string =>
  inspect(value, {
    depth: Number.POSITIVE_INFINITY,
    sorted: true,
    maxArrayLength: null,
    maxStringLength: null,
  })

function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}

const log = (message: string): void => logToStderr({}, message)
