/** `modelmount run`: one answer, or a conversation in the terminal. */
import { text } from 'node:stream/consumers'
import { InvalidArgumentError } from 'commander'
import { type AnswerLine, printAnswer } from '../chat/answer.ts'
import { Conversation, type Message, type Settings } from '../chat/conversation.ts'
import { describeMetrics } from '../chat/metrics.ts'
import { askForProgress } from '../chat/progress.ts'
import type { ShowAnswer } from '../describe-model.ts'
import { type ProgressLine, showProgress } from '../format/progress.ts'
import { showWaiting } from '../format/waiting.ts'
import { print } from '../output.ts'
import { type Server, ServerError, withServer } from '../server.ts'
import { clientCommand, type HostOption, registryOf } from './options/client-command.ts'

interface RunOptions extends HostOption {
  readonly format?: unknown
  readonly think?: boolean | string
  readonly hidethinking?: true
  readonly keepalive?: number | string
  readonly system?: string
  readonly verbose?: true
  readonly insecure?: true
  readonly nohistory?: true
}

export const run = clientCommand(
  'run <model> [prompt...]',
  'run a model: answer one prompt, or chat in the terminal',
)
  .option('--format <format>', 'response format: json, or a JSON Schema', toFormat)
  .option('--think <how>', 'thinking mode: true, false or a level such as high', toThink)
  .option('--hidethinking', 'hide thinking output')
  .option(
    '--keepalive <time>',
    'how long the model stays loaded, such as 10m; 0 unloads it at once',
    toKeepAlive,
  )
  .option('--system <text>', 'system message')
  .option('--verbose', 'show timings for the response')
  .option('--insecure', 'pull a missing model over http instead of https')
  .option('--nohistory', 'do not store the lines of the conversation')

run.action((model: string, words: readonly string[], options: RunOptions) =>
  withServer({ ...options, registry: registryOf(model) }, async (server) => {
    const piped = process.stdin.isTTY ? [] : [await text(process.stdin)]
    const prompt = [...piped, ...words].filter((one) => one.trim() !== '').join(' ')
    const answer = await showOrPull(server, model, options)
    if (prompt === '' && process.stdin.isTTY)
      return chatInteractively(server, model, answer.messages ?? [], options)
    if (isEmbeddingModel(answer)) return printEmbedding(server, model, prompt)
    await answerOnce(server, model, prompt, options)
  }),
)

/** Rewrites `--think` to `--think=true`. Otherwise the option would take the prompt as its value. */
export const expandThinkFlag = (words: readonly string[]): readonly string[] =>
  words.map((word, index) =>
    word === '--think' && !words.slice(0, index).includes('--') ? '--think=true' : word,
  )

async function chatInteractively(
  server: Server,
  model: string,
  messages: readonly Message[],
  options: RunOptions,
): Promise<void> {
  const { hidethinking: hideThinking = false, verbose: isVerbose = false, system = '' } = options
  const keepsHistory = !(options.nohistory || isSet(process.env.OLLAMA_NOHISTORY))
  const chat = new Conversation(server, model, settingsOf(options), { hideThinking, isVerbose, keepsHistory })
  chat.system = system
  await chat.load()
  for (const { role, content } of messages)
    print(role === 'user' ? `>>> ${content}\n` : role === 'assistant' ? `${content}\n\n` : '')
  // Its commands need core, which takes most of the time of a start.
  const { chatInTerminal } = await import('../chat/terminal.ts')
  await chatInTerminal(chat)
}

async function answerOnce(server: Server, model: string, prompt: string, options: RunOptions): Promise<void> {
  const { hidethinking: hideThinking = false, verbose = false, system } = options
  const request = {
    ...{ model, prompt, ...settingsOf(options), ...askForProgress() },
    ...(system !== undefined && { system }),
  }
  const { metrics } = await printAnswer(server.stream<AnswerLine>('/api/generate', request), { hideThinking })
  if (prompt !== '') print('\n\n')
  if (metrics && verbose) process.stderr.write(describeMetrics(metrics))
}

async function printEmbedding(server: Server, model: string, input: string): Promise<void> {
  const waiting = showWaiting(process.stderr)
  const { embeddings } = await server
    .post<{ readonly embeddings: readonly unknown[] }>('/api/embed', { model, input })
    .finally(waiting.stop)
  print(`${JSON.stringify(embeddings[0])}\n`)
}

/** Returns the description of a model. If the model is missing, pulls it first, with progress on stderr. */
async function showOrPull(server: Server, model: string, { insecure }: RunOptions): Promise<ShowAnswer> {
  const show = (): Promise<ShowAnswer> => server.post('/api/show', { model })
  try {
    return await show()
  } catch (error) {
    if (!(error instanceof ServerError && error.status === 404)) throw error
    await showProgress(server.stream<ProgressLine>('/api/pull', { model, insecure }), process.stderr)
    return show()
  }
}

const isEmbeddingModel = ({ capabilities = [] }: ShowAnswer): boolean =>
  capabilities.includes('embedding') && !capabilities.includes('completion')

const settingsOf = ({ format, think, keepalive }: RunOptions): Settings => ({
  ...(format !== undefined && { format }),
  ...(think !== undefined && { think }),
  ...(keepalive !== undefined && { keep_alive: keepalive }),
})

/** As in Ollama, any value but `0` and `false` sets a variable. */
const isSet = (variable = ''): boolean => variable.trim() !== '' && !/^(?:0|f|false)$/i.test(variable.trim())

function toFormat(text: string): unknown {
  if (text === 'json' || text === '') return text
  try {
    const schema: unknown = JSON.parse(text)
    if (typeof schema === 'object' && schema !== null && !Array.isArray(schema)) return schema
  } catch {
    // Invalid JSON gets the error below.
  }
  throw new InvalidArgumentError('Expected json, or a JSON Schema as a JSON object.')
}

function toThink(text: string): boolean | string {
  return text === 'true' || text === 'false' ? text === 'true' : text
}

/** A number without a unit means seconds. */
function toKeepAlive(text: string): number | string {
  return /^-?\d+$/.test(text) ? Number(text) : text
}
