/** Marks the breakpoints of a conversation with characters that show where the template writes them. */
import type { CacheLifetime, ChatInput, Message, Part, Tool } from '../../../request.ts'

/** A breakpoint, and the marks that are at its position or after it. */
export interface MarkedBreakpoint {
  readonly lifetime: CacheLifetime
  /** The breakpoint is at the first of these marks. */
  readonly marks: readonly string[]
  /**
   * For templates that write tools after the system message. If the first mark of `marks` does not come after
   * the first mark of `start`, the breakpoint is at the first mark of these `marks`.
   */
  readonly behindSystem?: { readonly start: readonly string[]; readonly marks: readonly string[] }
}

interface MarkedInput {
  readonly breakpoints: readonly MarkedBreakpoint[]
  readonly markedInput: ChatInput
}

/** Private-use characters, which conversations rarely contain. */
const firstMark = 0xe001
const lastMark = 0xf8ff

export const isMark = (character: string): boolean => {
  const code = character.charCodeAt(0)
  return code >= firstMark && code <= lastMark
}

/** The kind of tool or part that follows a start mark. */
type Target = 'tool' | 'system' | 'turn'

/** A mark in front of all tools or parts of the same section, or behind one part. */
interface Mark {
  readonly text: string
  readonly section: number
  readonly target: Target
}

/**
 * Divides the tools and parts of a conversation into sections, which end at breakpoints. The tools and parts
 * of one section have the same mark.
 */
class Marker {
  readonly #marks: Mark[] = []
  readonly #breakpoints: (() => MarkedBreakpoint)[] = []
  #last = firstMark - 1
  section = 0
  /** Whether the start of the following tools and parts is marked. */
  #isMarking = false

  get breakpoints(): readonly MarkedBreakpoint[] {
    return this.#breakpoints.map((create) => create())
  }

  /** Returns the mark in front of a tool or part of the current section, if it needs one. */
  start(target: Target): string {
    if (!this.#isMarking) return ''
    const { section } = this
    const existing = this.#marks.find((mark) => mark.section === section && mark.target === target)
    const mark = existing ?? { text: this.#create(), section, target }
    if (!existing) this.#marks.push(mark)
    return mark.text
  }

  /** Adds a breakpoint at a new mark, which the caller writes. */
  addHere(lifetime: CacheLifetime): string {
    const mark = this.#create()
    this.#breakpoints.push(() => ({ lifetime, marks: [mark] }))
    this.section++
    return mark
  }

  /** Adds a breakpoint in front of whatever the template writes first of the following parts. */
  addBeforeNext(lifetime: CacheLifetime): void {
    this.#isMarking = true
    const after = ++this.section
    this.#breakpoints.push(() => ({ lifetime, marks: this.#from(after) }))
  }

  /** Adds a breakpoint after a tool. Returns the mark in front of this tool. */
  addAfterTool(lifetime: CacheLifetime): string {
    this.#isMarking = true
    const own = ++this.section
    const start = this.start('tool')
    const after = ++this.section
    this.#breakpoints.push(() => ({
      lifetime,
      marks: this.#from(after),
      behindSystem: { start: this.#from(own, ['tool']), marks: this.#from(after, ['tool', 'turn']) },
    }))
    return start
  }

  #from(section: number, targets: readonly Target[] = ['tool', 'system', 'turn']): readonly string[] {
    return this.#marks
      .filter((mark) => mark.section >= section && targets.includes(mark.target))
      .map(({ text }) => text)
  }

  #create(): string {
    this.#last = Math.min(this.#last + 1, lastMark)
    return String.fromCharCode(this.#last)
  }
}

export function markBreakpoints(input: ChatInput): MarkedInput {
  const marker = new Marker()
  const tools = input.tools?.map((tool) => markTool(tool, marker))
  const lastPart = input.messages.at(-1)?.content.at(-1)
  let isFront = true
  const messages = input.messages.map(({ role, content }): Message => {
    isFront &&= role === 'system'
    const target = role === 'system' ? 'system' : 'turn'
    return {
      role,
      content: content.map((part) => markPart(part, marker, target, isFront, part === lastPart)),
    }
  })
  return {
    breakpoints: marker.breakpoints,
    markedInput: { ...input, messages, ...(tools && { tools }) },
  }
}

function markTool(tool: Tool, marker: Marker): Tool {
  const mark = tool.cache ? marker.addAfterTool(tool.cache) : marker.start('tool')
  return { ...tool, name: mark + tool.name }
}

/** @param isFront whether only system messages come before the part */
function markPart(part: Part, marker: Marker, target: Target, isFront: boolean, isLast: boolean): Part {
  const { cache } = part
  const started = withStart(part, marker.start(target))
  if (!cache) return started
  // Tools come before the system message in requests, but after it in many templates.
  if (isLast || !(isFront || part.type === 'tool-call')) return withEnd(started, marker.addHere(cache))
  marker.addBeforeNext(cache)
  return started
}

/** Templates may trim texts. So the marks are inside of the white space around a text. */
function withStart(part: Part, mark: string): Part {
  if (mark === '') return part
  if (part.type === 'tool-call') return { ...part, name: mark + part.name }
  if (part.type === 'tool-result')
    return { ...part, content: [{ type: 'text', text: mark }, ...part.content] }
  if (part.type === 'image') return part
  const trimmed = part.text.trimStart()
  return { ...part, text: part.text.slice(0, part.text.length - trimmed.length) + mark + trimmed }
}

function withEnd(part: Part, mark: string): Part {
  if (part.type === 'tool-call') return { ...part, name: part.name + mark }
  if (part.type === 'tool-result')
    return { ...part, content: [...part.content, { type: 'text', text: mark }] }
  if (part.type === 'image') return part
  const trimmed = part.text.trimEnd()
  return { ...part, text: trimmed + mark + part.text.slice(trimmed.length) }
}
