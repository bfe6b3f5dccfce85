/** Detects features of a model in its Go template. */
import type { Node, Operand, Pipe, Tree } from './parse.ts'

export interface TemplateFeatures {
  /** Whether the template lists the tools. */
  readonly tools: boolean
  /** Whether the template supports fill-in-the-middle. */
  readonly suffix: boolean
  /** Whether the template renders a whole conversation instead of one turn at a time. */
  readonly messages: boolean
  readonly response: boolean
  /** Tags around reasoning. */
  readonly thinking?: { readonly open: string; readonly close: string }
  /** Markup around the JSON of a tool call. `close` can be empty. */
  readonly calls?: { readonly open: string; readonly close: string }
}

export function detectFeatures(tree: Tree): TemplateFeatures {
  const all = [tree.nodes, ...tree.definitions.values()]
  const names = new Set(all.flatMap((nodes) => nodes.flatMap(collectNames)).map((name) => name.toLowerCase()))
  const thinking = all.map((nodes) => findThinkingTags(nodes)).find((tags) => tags !== undefined)
  const calls = all.map(findCallTags).find((marks) => marks !== undefined)
  return {
    tools: names.has('tools'),
    suffix: names.has('suffix'),
    messages: names.has('messages'),
    response: names.has('response'),
    ...(thinking && { thinking }),
    ...(calls && { calls }),
  }
}

/** Collects the names of all fields that a node and its children use. */
function collectNames(node: Node): readonly string[] {
  if (!('pipe' in node) || !node.pipe) return []
  const inside = 'list' in node ? [...node.list, ...node.otherwise].flatMap(collectNames) : []
  return [...collectPipeNames(node.pipe), ...inside]
}

const collectPipeNames = ({ commands }: Pipe): readonly string[] =>
  commands.flat().flatMap(collectOperandNames)

const collectOperandNames = (operand: Operand): readonly string[] => [
  ...('names' in operand ? operand.names : []),
  ...(operand.type === 'pipe' ? collectPipeNames(operand.pipe) : []),
]

export const isMentioned = (name: string, pipe: Pipe): boolean => collectPipeNames(pipe).includes(name)

/** Finds the text before and after `.Thinking` on the same line. */
function findThinkingTags(nodes: readonly Node[], isInMessages = false): TemplateFeatures['thinking'] {
  for (const [index, node] of nodes.entries()) {
    if (isInMessages && node.type === 'action' && isMentioned('Thinking', node.pipe)) {
      const open = textOf(nodes[index - 1])
        .trim()
        .split('\n')
        .at(-1)
        ?.trim()
      const close = textOf(nodes[index + 1])
        .trim()
        .split('\n')[0]
        ?.trim()
      if (open && close) return { open, close }
    }
    if (!('list' in node)) continue
    const inner = isInMessages || (node.type === 'range' && isMentioned('Messages', node.pipe))
    const tags = findThinkingTags(node.list, inner) ?? findThinkingTags(node.otherwise, inner)
    if (tags) return tags
  }
  return undefined
}

const textOf = (node: Node | undefined): string => (node?.type === 'text' ? node.text : '')

/** Finds the markup around the JSON of a tool call. The opening markup can precede a whole list of calls. */
function findCallTags(nodes: readonly Node[]): TemplateFeatures['calls'] {
  for (const [index, node] of nodes.entries()) {
    if (!('list' in node)) continue
    const isCalls = node.type === 'range' && isMentioned('ToolCalls', node.pipe)
    const found = isCalls
      ? extractCallTags(node.list, nodes[index - 1])
      : (findCallTags(node.list) ?? findCallTags(node.otherwise))
    if (found) return found
  }
  return undefined
}

function extractCallTags(call: readonly Node[], before: Node | undefined): TemplateFeatures['calls'] {
  const texts = call.filter(({ type }) => type === 'text')
  const own = lastLine(textOf(texts[0]).split('{', 1)[0])
  const close = own ? textOf(texts.at(-1)).split('}').at(-1)?.trim() : ''
  const open = own || lastLine(textOf(before).split('{', 1)[0]).replace(/\s*\[$/, '')
  // A leading quote belongs to the JSON.
  return open && !open.startsWith('"') ? { open, close: close ?? '' } : undefined
}

const lastLine = (text = ''): string => text.trim().split('\n').at(-1)?.trim() ?? ''
