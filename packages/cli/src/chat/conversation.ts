/** Messages and settings of a conversation. */
import { showWaiting } from '../format/waiting.ts'
import type { Server } from '../server.ts'
import { type AnswerLine, type AnswerSummary, printAnswer } from './answer.ts'
import { askForProgress, type ProgressFields, toOperation } from './progress.ts'

export interface Message {
  readonly role: string
  readonly content: string
}

/** Request fields of the Ollama API. */
export interface Settings {
  readonly format?: unknown
  readonly think?: boolean | string
  readonly keep_alive?: number | string
  readonly options?: Readonly<Record<string, unknown>>
}

export class Conversation {
  readonly server: Server
  model: string
  system = ''
  settings: Settings
  hideThinking: boolean
  isVerbose: boolean
  /** Whether the terminal stores the lines that the user types. */
  keepsHistory: boolean
  #messages: readonly Message[] = []

  constructor(
    server: Server,
    model: string,
    settings: Settings,
    { hideThinking = false, isVerbose = false, keepsHistory = false } = {},
  ) {
    this.server = server
    this.model = model
    this.settings = settings
    this.hideThinking = hideThinking
    this.isVerbose = isVerbose
    this.keepsHistory = keepsHistory
  }

  get messages(): readonly Message[] {
    return this.#messages
  }

  clear(): void {
    this.#messages = []
  }

  /** Loads the model into memory, and shows how far it is. Throws `ServerError`. */
  async load(): Promise<void> {
    const { keep_alive } = this.settings
    const request = { model: this.model, keep_alive, ...askForProgress() }
    const waiting = showWaiting(process.stderr)
    try {
      for await (const line of this.server.stream<ProgressFields>('/api/generate', request))
        waiting.report(toOperation(line))
    } finally {
      waiting.stop()
    }
  }

  /**
   * Sends a message and prints the answer. The conversation keeps the text of a stopped answer. After an
   * error, it keeps neither the message nor the answer.
   */
  async send(content: string, signal: AbortSignal): Promise<AnswerSummary> {
    const messages = [...this.#messages, { role: 'user', content }]
    const { system, model, settings, hideThinking } = this
    const request = {
      model,
      ...settings,
      ...askForProgress(),
      messages: [...(system ? [{ role: 'system', content: system }] : []), ...messages],
    }
    const lines = this.server.stream<AnswerLine>('/api/chat', request, signal)
    const answer = await printAnswer(lines, { hideThinking, signal })
    this.#messages = answer.text ? [...messages, { role: 'assistant', content: answer.text }] : messages
    return answer
  }
}
