/** Commands in a conversation: lines that begin with `/`. */

import { describeModel, type ShowAnswer } from '../describe-model.ts'
import { print } from '../output.ts'
import { parameterOf } from '../parameters.ts'
import { ServerError } from '../server.ts'
import type { Conversation } from './conversation.ts'
import { help } from './help.ts'

type CommandHandler = (chat: Conversation, words: readonly string[], text: string) => string | Promise<string>

/** Runs a command. Returns true when it ends the conversation. Throws `ServerError`. */
export async function runCommand(chat: Conversation, text: string): Promise<boolean> {
  const [name = '', ...words] = text.match(/"[^"]*"|\S+/g) ?? []
  if (name === '/bye' || name === '/exit') return true
  const handler = commands[name]
  print(handler ? await handler(chat, words, text) : `Unknown command '${name}'. Type /? for help\n`)
  return false
}

const commands: Readonly<Record<string, CommandHandler>> = {
  '/?': (_, [about]) => helpOn(about),
  '/help': (_, [about]) => helpOn(about),
  '/clear': (chat) => {
    chat.clear()
    return 'Cleared session context\n'
  },
  '/load': async (chat, [model]) => {
    if (!model) return 'Usage:\n  /load <modelname>\n'
    const before = chat.model
    chat.model = model
    try {
      print(`Loading model '${model}'\n`)
      await chat.load()
    } catch (error) {
      chat.model = before
      if (error instanceof ServerError && error.status === 404) return `Couldn't find model '${model}'\n`
      throw error
    }
    chat.clear()
    return ''
  },
  '/save': async (chat, [name]) => {
    if (!name) return 'Usage:\n  /save <modelname>\n'
    const { model: from, system, messages, settings } = chat
    await chat.server.post('/api/create', {
      model: name,
      from,
      messages,
      ...(system && { system }),
      ...(settings.options && { parameters: settings.options }),
    })
    return `Created new model '${name}'\n`
  },
  '/set': (chat, words, text) => {
    const [what = ''] = words
    return settings[what]?.(chat, words.slice(1), text) ?? (what ? unknown(`/set ${what}`) : helpOn('set'))
  },
  '/show': async (chat, [what]) => {
    if (!what) return helpOn('show')
    const answer = await chat.server.post<ShowAnswer>('/api/show', { model: chat.model })
    return shown(chat, answer, what) ?? unknown(`/show ${what}`)
  },
}

const unknown = (command: string): string => `Unknown command '${command}'. Type /? for help\n`

const helpOn = (about = ''): string => help[about.replace(/^\//, '')] ?? unknown(`/? ${about}`)

type Setting = (chat: Conversation, words: readonly string[], text: string) => string

const settings: Readonly<Record<string, Setting>> = {
  system: (chat, words, text) => {
    if (words.length === 0) return helpOn('set')
    chat.system = text.replace(/^\/set\s+system\s+/, '')
    return 'Set system message.\n'
  },
  parameter: (chat, [name = '', ...values]) => {
    if (values.length === 0) return helpOn('set')
    const options = { ...chat.settings.options, [name]: parameterOf(name, values) }
    chat.settings = { ...chat.settings, options }
    return `Set parameter '${name}' to '${values.join(', ')}'\n`
  },
  format: (chat, [format]) => {
    if (format !== 'json') return "Invalid or missing format. For 'json' mode use '/set format json'\n"
    chat.settings = { ...chat.settings, format }
    return "Set format to 'json' mode.\n"
  },
  noformat: (chat) => {
    const { format: _, ...others } = chat.settings
    chat.settings = others
    return 'Disabled format.\n'
  },
  think: (chat, [level]) => {
    chat.settings = { ...chat.settings, think: level ?? true }
    return level ? `Set 'think' mode to '${level}'.\n` : "Set 'think' mode.\n"
  },
  nothink: (chat) => {
    chat.settings = { ...chat.settings, think: false }
    return "Set 'nothink' mode.\n"
  },
  verbose: (chat) => {
    chat.isVerbose = true
    return "Set 'verbose' mode.\n"
  },
  history: (chat) => {
    chat.keepsHistory = true
    return ''
  },
  nohistory: (chat) => {
    chat.keepsHistory = false
    return ''
  },
  quiet: (chat) => {
    chat.isVerbose = false
    return "Set 'quiet' mode.\n"
  },
}

/** Returns the text for `/show`, or undefined for an unknown part. */
function shown(chat: Conversation, answer: ShowAnswer, what: string): string | undefined {
  if (what === 'info') return describeModel(answer, false)
  if (what === 'parameters') return parametersOf(chat, answer)
  if (what === 'system')
    return `${chat.system || answer.system || 'No system message was specified for this model.'}\n\n`
  if (what === 'license') return `${answer.license ?? 'No license was specified for this model.'}\n`
  if (what === 'template') return `${answer.template ?? 'No prompt template was specified for this model.'}\n`
  return what === 'modelfile' ? `${answer.modelfile}\n` : undefined
}

function parametersOf({ settings: { options = {} } }: Conversation, { parameters }: ShowAnswer): string {
  const own = parameters || 'No additional parameters were specified for this model.'
  const added = Object.entries(options).map(([name, value]) => `${name.padEnd(30)} ${String(value)}`)
  const lines = ['Model defined parameters:', ...own.split('\n').map((line) => `  ${line}`), '']
  if (added.length > 0) lines.push('User defined parameters:', ...added.map((line) => `  ${line}`), '')
  return `${lines.join('\n')}\n`
}
