/**
 * Renders the Go templates (`text/template`) of Modelfiles. The fields in a template decide what it renders:
 * a whole conversation, a single turn, or a prompt with a suffix. Modelled on Ollama's
 * `template/template.go`.
 */
import type { Tool } from '../../engine/request.ts'
import { limits } from '../../engine/request-limits.ts'
import type { TemplateMessage } from '../template-message.ts'
import { collate, toMessage, toTool } from './data.ts'
import { GoTemplateError } from './error.ts'
import { detectFeatures, type TemplateFeatures } from './features.ts'
import { parseTree, type Tree } from './parse.ts'
import { type ExecutionBounds, runTree } from './run.ts'
import { truncateAtResponse } from './truncate.ts'
import { GoMap, type GoValue } from './values.ts'

export { GoTemplateError } from './error.ts'
export type { TemplateFeatures } from './features.ts'

export interface ThinkSettings {
  /** Whether the model should think. Absent if the request does not specify it. */
  readonly think?: boolean | undefined
  /** `low`, `medium`, `high` or `max`. Ignored unless `think` is true. @default 'medium' */
  readonly level?: string | undefined
}

export interface GoTemplate {
  readonly features: TemplateFeatures
  /** Throws `GoTemplateError`. */
  renderChat(
    messages: readonly TemplateMessage[],
    tools: readonly Tool[],
    thinking?: ThinkSettings,
    bounds?: Partial<ExecutionBounds>,
  ): string
  /** Renders a fill-in-the-middle prompt. Throws `GoTemplateError`. */
  renderInfill(
    prefix: string,
    suffix: string,
    thinking?: ThinkSettings,
    bounds?: Partial<ExecutionBounds>,
  ): string
}

/**
 * Throws `GoTemplateError` with Go's message for invalid syntax. Also throws it if the source is longer than
 * `limits.templateLength` characters.
 */
export function parseGoTemplate(source: string): GoTemplate {
  if (source.length > limits.templateLength)
    throw new GoTemplateError(`template: longer than ${limits.templateLength} characters`)
  const parsed = parseTree(source)
  const features = detectFeatures(parsed)
  // If the template has no `.Response`, the response follows at the end.
  const tree = features.messages || features.response ? parsed : parseTree(`${source}{{ .Response }}`)
  const turnTemplate = { tree, lastTurn: truncateAtResponse(tree) }
  return {
    features,
    renderChat: (messages, tools, thinking = {}, bounds = {}) => {
      const conversation = collate(messages)
      if (!features.messages) return renderTurns(turnTemplate, conversation.messages, thinking, bounds)
      const data = {
        System: conversation.system,
        Messages: conversation.messages.map(toMessage),
        Tools: tools.map(toTool),
        Response: '',
      }
      return runTree(tree, toData(data, thinking), bounds)
    },
    renderInfill: (prefix, suffix, thinking = {}, bounds = {}) =>
      runTree(tree, toData({ Prompt: prefix, Suffix: suffix, Response: '' }, thinking), bounds),
  }
}

function toData(values: Readonly<Record<string, GoValue>>, { think, level }: ThinkSettings): GoMap {
  const thinkData = {
    Think: think === true,
    ThinkLevel: think ? (level ?? 'medium') : '',
    IsThinkSet: think !== undefined,
  }
  return new GoMap(Object.entries({ ...values, ...thinkData }))
}

interface TurnTemplate {
  readonly tree: Tree
  /** The tree up to `.Response`, where the model continues. */
  readonly lastTurn: Tree
}

/** Renders the system message, prompt and response of each turn. The model continues the last response. */
function renderTurns(
  { tree, lastTurn }: TurnTemplate,
  messages: readonly TemplateMessage[],
  thinking: ThinkSettings,
  bounds: Partial<ExecutionBounds>,
): string {
  const rendered: string[] = []
  let turn = { System: '', Prompt: '', Response: '' }
  const end = (): void => {
    rendered.push(runTree(tree, toData(turn, thinking), bounds))
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
  rendered.push(runTree(lastTurn, toData(turn, thinking), bounds))
  return rendered.join('')
}
