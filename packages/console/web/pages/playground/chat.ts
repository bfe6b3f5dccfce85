/** The conversation of the playground. It goes on while the viewer looks at other pages. */
import type { QueryClient } from '@tanstack/preact-query'
import { request as send } from '../../api/client.ts'
import { toNetworkError } from '../../api/errors.ts'
import { changeKept, type KeptState, readKept, useKept } from '../../llm/kept-state.ts'
import { type Answer, addPart, startAnswer, toMessage } from './answer.ts'
import type { ApiName, ChatRequest, Message } from './apis/api.ts'
import { apis } from './apis/index.ts'
import { defaultSettings, type Settings } from './settings.ts'

export interface Turn {
  readonly message: Message
  /** Of a message of the model. */
  readonly answer?: Answer
  readonly model?: string
}

export interface Chat {
  readonly settings: Settings
  readonly turns: readonly Turn[]
  /** The answer that the model writes now. */
  readonly running?: { readonly answer: Answer; readonly model: string; readonly controller: AbortController }
  readonly error?: unknown
}

const chat: KeptState<Chat> = { key: ['playground'], initial: { settings: defaultSettings, turns: [] } }

export const useChat = () => useKept(chat)

export const changeSettings = (client: QueryClient, changes: Partial<Settings>): void =>
  changeKept(client, chat, (state) => ({ ...state, settings: { ...state.settings, ...changes } }))

/** Forgets the conversation, and keeps the settings. */
export function clearChat(client: QueryClient): void {
  stopAnswer(client)
  changeKept(client, chat, ({ settings }) => ({ settings, turns: [] }))
}

export const stopAnswer = (client: QueryClient): void => readKept(client, chat).running?.controller.abort()

/** The turns before the last answer, to ask again. */
export const turnsToAsk = (turns: readonly Turn[]): readonly Turn[] =>
  turns.slice(0, turns.findLastIndex(({ message }) => message.role !== 'assistant') + 1)

/** Sends a request, and adds the answer to the conversation as it arrives. */
export async function ask(
  client: QueryClient,
  api: ApiName,
  request: ChatRequest,
  turns: readonly Turn[],
): Promise<void> {
  const controller = new AbortController()
  const { model } = request
  const state = new RunningAnswer((answer) => {
    changeKept(client, chat, (chat) =>
      // The viewer may have cleared the conversation.
      chat.running?.controller === controller ? { ...chat, running: { answer, model, controller } } : chat,
    )
  })
  changeKept(client, chat, ({ settings }) => ({
    settings,
    turns,
    running: { answer: state.answer, model, controller },
  }))
  const failure = await receive(api, request, controller.signal, state).then(
    () => undefined,
    (error: unknown) => ({ error: toNetworkError(error) }),
  )
  state.stop()
  const isComplete = failure === undefined
  const message = toMessage(isComplete ? state.answer : { ...state.answer, calls: {} })
  changeKept(client, chat, (chat) => {
    if (chat.running?.controller !== controller) return chat
    const { running: _, ...rest } = chat
    return {
      ...rest,
      turns: message ? [...chat.turns, { message, model, answer: state.answer }] : chat.turns,
      ...(failure && !controller.signal.aborted && failure),
    }
  })
}

async function receive(
  name: ApiName,
  request: ChatRequest,
  signal: AbortSignal,
  state: RunningAnswer,
): Promise<void> {
  const { path, toBody, measuring, readAnswer } = apis[name]
  const response = await send(`llm${path}`, { json: { ...toBody(request), ...measuring }, signal })
  for await (const part of readAnswer(response)) state.update(addPart(state.answer, part, performance.now()))
}

/** Shows the answer once per frame: models can write a thousand tokens per second. */
class RunningAnswer {
  answer = startAnswer(performance.now())
  readonly #show: (answer: Answer) => void
  #frame: number | undefined

  constructor(show: (answer: Answer) => void) {
    this.#show = show
  }

  update(answer: Answer): void {
    this.answer = answer
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = undefined
      this.#show(this.answer)
    })
  }

  stop(): void {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame)
  }
}
