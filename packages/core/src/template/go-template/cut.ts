/** A template of single turns, up to where the model goes on: what stands behind its answer is for turns that are over. */
import type { Node, Tree } from './parse.ts'
import { isMentioned } from './uses.ts'

export const untilResponse = (tree: Tree): Tree => ({ ...tree, nodes: cut(tree.nodes).nodes })

interface Cut {
  readonly nodes: readonly Node[]
  readonly found: boolean
}

function cut(nodes: readonly Node[]): Cut {
  const kept: Node[] = []
  for (const node of nodes) {
    const { node: left, found } = cutNode(node)
    if (left) kept.push(left)
    if (found) return { nodes: kept, found }
  }
  return { nodes: kept, found: false }
}

function cutNode(node: Node): { readonly node?: Node; readonly found: boolean } {
  if (!('pipe' in node) || !node.pipe) return { node, found: false }
  const isIn = isMentioned('Response', node.pipe)
  if (!('list' in node)) return { node, found: isIn }
  if (isIn) return { found: true }
  const list = cut(node.list)
  if (list.found) return { node: { ...node, list: list.nodes, otherwise: [] }, found: true }
  const otherwise = cut(node.otherwise)
  return { node: { ...node, otherwise: otherwise.nodes }, found: otherwise.found }
}
