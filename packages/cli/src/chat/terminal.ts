/** A conversation in the terminal: lines are read, answers printed, until somebody leaves. */
import { createInterface, type Interface } from 'node:readline'
import { print } from '../output.ts'
import { faint } from './answer.ts'
import { runCommand } from './chat-commands.ts'
import type { Conversation } from './conversation.ts'
import { MessageReader } from './message-reader.ts'
import { describeMetrics } from './metrics.ts'

const hint = 'Send a message (/? for help)'

export async function chatInTerminal(chat: Conversation): Promise<void> {
  const reader = new MessageReader()
  const lines = createInterface({ input: process.stdin, output: process.stdout })
  let answering: AbortController | undefined
  let isHinting = false
  const prompt = (): void => {
    lines.setPrompt(reader.isOpen ? '... ' : '>>> ')
    lines.prompt()
    isHinting = !reader.isOpen
    if (isHinting) print(`${faint(hint)}\x1b[${hint.length}D`)
  }
  // What is typed takes the place of the hint.
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
    // Closed by hand: until then the terminal keeps the process.
    if (entry && (await answerTo(chat, entry, answering.signal))) return lines.close()
    answering = undefined
    prompt()
  }
  print('\n')
}

/** Returns whether the conversation is at its end. What goes wrong is a line, and the conversation goes on. */
async function answerTo(
  chat: Conversation,
  { kind, text }: { readonly kind: 'message' | 'command'; readonly text: string },
  signal: AbortSignal,
): Promise<boolean> {
  try {
    if (kind === 'command') return await runCommand(chat, text)
    const { metrics } = await chat.say(text, signal)
    print('\n\n')
    if (metrics && chat.isVerbose) process.stderr.write(describeMetrics(metrics))
  } catch (error) {
    process.stderr.write(`Error: ${(error as Error).message}\n`)
  }
  return false
}

function emptyLine(lines: Interface): void {
  lines.write(null, { ctrl: true, name: 'e' })
  lines.write(null, { ctrl: true, name: 'u' })
}
