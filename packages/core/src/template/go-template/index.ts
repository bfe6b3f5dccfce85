/**
 * Templates in Go's language: what Modelfiles have. `parseGoTemplate` says what one takes and how its model writes; the prompt is
 * made of messages in three ways, by what the template names. Shape: Ollama `template/template.go`.
 */
import { limits, type Tool } from '../../engine/request.ts'
import type { TemplateMessage } from '../messages.ts'
import { untilResponse } from './cut.ts'
import { collate, toMessage, toTool } from './data.ts'
import { GoTemplateError } from './error.ts'
import { parseTree, type Tree } from './parse.ts'
import { type Bounds, runTree } from './run.ts'
import { type Uses, usesOf } from './uses.ts'
import { GoMap, type Value } from './values.ts'

export { GoTemplateError } from './error.ts'
export type { Uses } from './uses.ts'

export interface Thinking {
  /** Whether the model is to think; absent: nobody has said. */
  readonly think?: boolean | undefined
  /** `low`, `medium`, `high` or `max`. */
  readonly level?: string | undefined
}

export interface GoTemplate {
  readonly uses: Uses
  /** Throws `GoTemplateError`, as `fill` does. */
  prompt(
    messages: readonly TemplateMessage[],
    tools: readonly Tool[],
    thinking?: Thinking,
    bounds?: Partial<Bounds>,
  ): string
  /** What is around a gap. */
  fill(prefix: string, suffix: string, thinking?: Thinking, bounds?: Partial<Bounds>): string
}

/** Throws `GoTemplateError`, in Go's words; and before it reads one that is longer than `limits.templateLength`. */
export function parseGoTemplate(source: string): GoTemplate {
  if (source.length > limits.templateLength)
    throw new GoTemplateError(`template: longer than ${limits.templateLength} characters`)
  const written = parseTree(source)
  const uses = usesOf(written)
  // One that names no answer has it at its end.
  const tree = uses.messages || uses.response ? written : parseTree(`${source}{{ .Response }}`)
  const last = untilResponse(tree)
  return {
    uses,
    prompt: (messages, tools, thinking = {}, bounds = {}) => {
      const conversation = collate(messages)
      if (!uses.messages) return inTurns({ tree, last }, conversation.messages, thinking, bounds)
      const data = {
        System: conversation.system,
        Messages: conversation.messages.map(toMessage),
        Tools: tools.map(toTool),
        Response: '',
      }
      return runTree(tree, toData(data, thinking), bounds)
    },
    fill: (prefix, suffix, thinking = {}, bounds = {}) =>
      runTree(tree, toData({ Prompt: prefix, Suffix: suffix, Response: '' }, thinking), bounds),
  }
}

function toData(values: Readonly<Record<string, Value>>, { think, level }: Thinking): GoMap {
  const thinks = {
    Think: think === true,
    ThinkLevel: think ? (level ?? 'medium') : '',
    IsThinkSet: think !== undefined,
  }
  return new GoMap(Object.entries({ ...values, ...thinks }))
}

/** System, prompt and answer, and again; the last answer is the model's to go on with. */
function inTurns(
  { tree, last }: Readonly<Record<'tree' | 'last', Tree>>,
  messages: readonly TemplateMessage[],
  thinking: Thinking,
  bounds: Partial<Bounds>,
): string {
  const said: string[] = []
  let turn = { System: '', Prompt: '', Response: '' }
  const end = (): void => {
    said.push(runTree(tree, toData(turn, thinking), bounds))
    turn = { System: '', Prompt: '', Response: '' }
  }
  for (const { role, content } of messages) {
    if (role === 'system') {
      if (turn.Prompt !== '' || turn.Response !== '') end()
      turn.System = content
    } else if (role === 'assistant') turn.Response = content
    else {
      if (turn.Response !== '') end()
      turn.Prompt = turn.Prompt === '' ? content : `${turn.Prompt}\n\n${content}`
    }
  }
  said.push(runTree(last, toData(turn, thinking), bounds))
  return said.join('')
}
