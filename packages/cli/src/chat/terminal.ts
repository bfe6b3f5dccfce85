/** A conversation in the terminal: reads lines and prints answers until the user exits. */
import { createInterface, type Interface } from 'node:readline'
import { print } from '../output.ts'
import { faint } from './answer.ts'
import { runCommand } from './chat-commands.ts'
import type { Conversation } from './conversation.ts'
import { History, maxEntries } from './history.ts'
import { MessageReader } from './message-reader.ts'
import { describeMetrics } from './metrics.ts'

const hint = 'Send a message (/? for help)'

export async function chatInTerminal(chat: Conversation): Promise<void> {
  const reader = new MessageReader()
  const { history, store } = openHistory(chat)
  const lines = createInterface({
    input: process.stdin,
    output: process.stdout,
    history,
    historySize: maxEntries,
  })
  lines.on('history', store)
  let answering: AbortController | undefined
  let isHinting = false
  const prompt = (): void => {
    lines.setPrompt(reader.isOpen ? '... ' : '>>> ')
    lines.prompt()
    isHinting = !reader.isOpen
    if (isHinting) print(`${faint(hint)}\x1b[${hint.length}D`)
  }
  // The first key erases the hint.
  process.stdin.on('keypress', () => {
    if (isHinting) print('\x1b[K')
    isHinting = false
  })
  lines.on('SIGINT', () => {
    if (answering) return answering.abort()
    print(lines.line === '' && !reader.isOpen ? '\nUse Ctrl + d or /bye to exit.\n' : '\n')
    reader.drop()
    emptyLine(lines)
    prompt()
  })

  prompt()
  for await (const line of lines) {
    const entry = reader.take(line)
    answering = new AbortController()
    // An open readline interface would keep the process alive.
    if (entry && (await answerTo(chat, entry, answering.signal))) return lines.close()
    answering = undefined
    prompt()
  }
  print('\n')
}

/**
 * Answers a message, or runs a command. Returns true when the conversation ends. Prints errors, after which
 * the conversation continues.
 */
async function answerTo(
  chat: Conversation,
  { kind, text }: { readonly kind: 'message' | 'command'; readonly text: string },
  signal: AbortSignal,
): Promise<boolean> {
  try {
    if (kind === 'command') return await runCommand(chat, text)
    const { metrics } = await chat.send(text, signal)
    print('\n\n')
    if (metrics && chat.isVerbose) process.stderr.write(describeMetrics(metrics))
  } catch (error) {
    process.stderr.write(`Error: ${(error as Error).message}\n`)
  }
  return false
}

/** The lines that the arrow keys show, the newest first, and a listener that stores each new one. */
function openHistory(chat: Conversation): {
  readonly history: string[]
  readonly store: (history: string[]) => void
} {
  const stored = new History()
  let kept = chat.keepsHistory ? stored.entries.toReversed() : []
  return {
    history: [...kept],
    store: (history) => {
      if (chat.keepsHistory) {
        stored.add(history[0] ?? '')
        kept = [...history]
      } else history.splice(0, history.length, ...kept)
    },
  }
}

function emptyLine(lines: Interface): void {
  lines.write(null, { ctrl: true, name: 'e' })
  lines.write(null, { ctrl: true, name: 'u' })
}
