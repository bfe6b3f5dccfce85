/**
 * Cuts a single-turn template at `.Response`, where the model continues. Only finished turns render the rest.
 */
import { isMentioned } from './features.ts'
import type { Node, Tree } from './parse.ts'

export const truncateAtResponse = (tree: Tree): Tree => ({ ...tree, nodes: truncate(tree.nodes).nodes })

interface TruncatedNodes {
  readonly nodes: readonly Node[]
  readonly isFound: boolean
}

function truncate(nodes: readonly Node[]): TruncatedNodes {
  const remaining: Node[] = []
  for (const node of nodes) {
    const { node: left, isFound } = truncateNode(node)
    if (left) remaining.push(left)
    if (isFound) return { nodes: remaining, isFound }
  }
  return { nodes: remaining, isFound: false }
}

function truncateNode(node: Node): { readonly node?: Node; readonly isFound: boolean } {
  if (!('pipe' in node) || !node.pipe) return { node, isFound: false }
  const isMentionedHere = isMentioned('Response', node.pipe)
  if (!('list' in node)) return { node, isFound: isMentionedHere }
  if (isMentionedHere) return { isFound: true }
  const list = truncate(node.list)
  if (list.isFound) return { node: { ...node, list: list.nodes, otherwise: [] }, isFound: true }
  const otherwise = truncate(node.otherwise)
  return { node: { ...node, otherwise: otherwise.nodes }, isFound: otherwise.isFound }
}
