/**
 * Output items of a response, and the events for each.
 * Shape: OpenAI API reference, "The response object", `output`, and "Streaming events".
 */
import type { ContentEvent, SampledToken } from '../../../engine/events.ts'
import { tryParseJson } from '../../../util/try-parse-json.ts'
import { toTokenLogprob } from '../render.ts'
import { toOutputItemId } from './item-ids.ts'
import { encodeReasoning } from './opaque-reasoning.ts'
import { TextArgument } from './text-argument.ts'
import type { ListedTool } from './tools.ts'

/** An event without its sequence number. */
export interface ResponseStreamEvent {
  readonly type: string
  readonly [field: string]: unknown
}

export interface OutputOptions {
  /** Id of the response. */
  readonly id: string
  /** Whether reasoning is repeated as its summary. Some clients show only the summary. */
  readonly hasSummary: boolean
  /** Whether reasoning is also sent as `encrypted_content`, for clients that send this field back. */
  readonly hasEncryptedContent: boolean
  /** Tools by their name for the model. */
  readonly tools: ReadonlyMap<string, ListedTool>
}

type ToolCallEvent = Extract<ContentEvent, { type: 'tool-call' }>
type ItemStatus = 'in_progress' | 'completed' | 'incomplete'
interface OutputItem {
  readonly id: string
  readonly type: 'message' | 'reasoning' | 'function_call' | 'custom_tool_call'
  readonly status: ItemStatus
  readonly [field: string]: unknown
}

/** For each kind of text, its field in an item and the names of its events. */
const textKinds = {
  output_text: { list: 'content', index: 'content_index', part: 'content_part', text: 'output_text' },
  reasoning_text: { list: 'content', index: 'content_index', part: 'content_part', text: 'reasoning_text' },
  summary_text: {
    list: 'summary',
    index: 'summary_index',
    part: 'reasoning_summary_part',
    text: 'reasoning_summary_text',
  },
} as const
type TextKind = keyof typeof textKinds

/** Emits output items. Each item is done before the next item is added, since clients rely on this order. */
export class ResponseOutput {
  /** Items so far. The open item is the last. */
  readonly items: OutputItem[] = []
  readonly #options: OutputOptions
  /** Text of the open item. */
  #text = ''
  /** Set if the open item is the call of a custom tool. */
  #argument: TextArgument | undefined
  #logprobs: object[] = []
  #isOpen = false

  constructor(options: OutputOptions) {
    this.#options = options
  }

  *push(event: ContentEvent): Generator<ResponseStreamEvent> {
    if (event.type === 'tool-call') yield* this.#addCall(event)
    else if (event.type === 'tool-arguments') yield* this.#pushArguments(event.json)
    else {
      yield* this.#begin(event.type === 'text' ? 'message' : 'reasoning')
      yield* this.#delta(event.text, event.logprobs)
    }
  }

  /** @param isCut whether a limit has left the last item incomplete */
  *end(isCut: boolean): Generator<ResponseStreamEvent> {
    yield* this.#close(isCut)
    // If there is only reasoning, an empty message is added. Otherwise agents would repeat the request.
    if (isCut || this.items.some(({ type }) => type !== 'reasoning')) return
    yield* this.#begin('message')
    yield* this.#close(false)
  }

  get isIncomplete(): boolean {
    return this.items.some(({ status }) => status === 'incomplete')
  }

  *#begin(type: 'message' | 'reasoning'): Generator<ResponseStreamEvent> {
    if (this.#isOpen && this.items.at(-1)?.type === type) return
    const item = { type, status: 'in_progress' } as const
    if (type === 'message')
      yield* this.#add({ id: this.#newId(type), ...item, role: 'assistant', content: [] })
    else yield* this.#add({ id: this.#newId(type), ...item, summary: [], content: [] })
    for (const kind of this.#textKinds())
      yield {
        type: `response.${textKinds[kind].part}.added`,
        ...this.#position(kind),
        part: this.#part(kind),
      }
  }

  *#addCall({ id: call_id, name: modelName }: ToolCallEvent): Generator<ResponseStreamEvent> {
    const { tool, namespace } = this.#options.tools.get(modelName) ?? {}
    const type = tool?.type === 'custom' ? 'custom_tool_call' : 'function_call'
    yield* this.#add({
      ...{ id: this.#newId(type), type, status: 'in_progress', call_id, name: tool?.name ?? modelName },
      ...(namespace !== undefined && { namespace }),
      ...(type === 'custom_tool_call' ? { input: '' } : { arguments: '' }),
    })
    if (type === 'custom_tool_call') this.#argument = new TextArgument()
  }

  *#pushArguments(json: string): Generator<ResponseStreamEvent> {
    this.#text += json
    if (this.#argument) yield* this.#inputDelta(this.#argument.push(json))
    else yield { type: 'response.function_call_arguments.delta', ...this.#position(), delta: json }
  }

  *#inputDelta(delta: string): Generator<ResponseStreamEvent> {
    if (delta !== '') yield { type: 'response.custom_tool_call_input.delta', ...this.#position(), delta }
  }

  *#add(item: OutputItem): Generator<ResponseStreamEvent> {
    yield* this.#close(false)
    this.#text = ''
    this.#argument = undefined
    this.#logprobs = []
    this.#isOpen = true
    this.items.push(item)
    yield { type: 'response.output_item.added', output_index: this.items.length - 1, item }
  }

  *#delta(text: string, tokens: readonly SampledToken[] = []): Generator<ResponseStreamEvent> {
    this.#text += text
    const logprobs = tokens.map(toTokenLogprob)
    for (const one of logprobs) this.#logprobs.push(one)
    for (const kind of this.#textKinds())
      yield {
        type: `response.${textKinds[kind].text}.delta`,
        ...this.#position(kind),
        delta: text,
        ...(kind === 'output_text' && { logprobs }),
      }
  }

  *#close(isCut: boolean): Generator<ResponseStreamEvent> {
    const item = this.items.at(-1)
    if (!item || !this.#isOpen) return
    if (this.#argument) yield* this.#inputDelta(this.#argument.end())
    this.#isOpen = false
    const done = { ...item, ...this.#finalFields(item), status: this.#statusOf(item, isCut) }
    if (item.type === 'function_call') {
      const fields = { name: item.name, arguments: this.#text }
      yield { type: 'response.function_call_arguments.done', ...this.#position(), ...fields }
    }
    if (this.#argument) {
      const { text: input } = this.#argument
      yield { type: 'response.custom_tool_call_input.done', ...this.#position(), input }
    }
    for (const kind of this.#textKinds()) {
      const part = this.#part(kind)
      const { type: _, annotations: __, ...fields } = part
      yield { type: `response.${textKinds[kind].text}.done`, ...this.#position(kind), ...fields }
      yield { type: `response.${textKinds[kind].part}.done`, ...this.#position(kind), part }
    }
    this.items.splice(-1, 1, done)
    yield { type: 'response.output_item.done', output_index: this.items.length - 1, item: done }
  }

  /** Content fields of the open item when the item is done. */
  #finalFields({ type }: OutputItem): object {
    if (type === 'function_call') return { arguments: this.#text }
    if (this.#argument) return { input: this.#argument.text }
    const lists = this.#textKinds().map((kind) => [textKinds[kind].list, [this.#part(kind)]] as const)
    const encrypted = type === 'reasoning' &&
      this.#options.hasEncryptedContent && { encrypted_content: encodeReasoning(this.#text) }
    return { ...Object.fromEntries(lists), ...encrypted }
  }

  /** Status of an item that is done. A tool call can be incomplete even if no limit has ended the answer. */
  #statusOf({ type }: OutputItem, isCut: boolean): ItemStatus {
    const isCall = type === 'function_call' || type === 'custom_tool_call'
    const isComplete = isCall ? tryParseJson(this.#text) !== undefined : !isCut
    return isComplete ? 'completed' : 'incomplete'
  }

  /** Kinds of text that the open item has. */
  #textKinds(): readonly TextKind[] {
    const type = this.items.at(-1)?.type
    if (type === 'function_call' || type === 'custom_tool_call') return []
    if (type === 'message') return ['output_text']
    return this.#options.hasSummary ? ['reasoning_text', 'summary_text'] : ['reasoning_text']
  }

  #part(kind: TextKind) {
    const text = this.#text
    return kind === 'output_text'
      ? { type: kind, text, annotations: [], logprobs: this.#logprobs }
      : { type: kind, text }
  }

  #position(kind?: TextKind): object {
    const index = kind && { [textKinds[kind].index]: 0 }
    return { item_id: this.items.at(-1)?.id, output_index: this.items.length - 1, ...index }
  }

  #newId(type: OutputItem['type']): string {
    return toOutputItemId(type, this.#options.id, this.items.length)
  }
}
