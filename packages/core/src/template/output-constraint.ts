/**
 * Derives the output constraint of a request. The constraint uses the markup of the model family, so that the
 * output parser can parse the constrained output.
 */
import type { GenerateRequest } from '../engine/request.ts'
import type { OutputConstraint } from '../grammar/constraint.ts'
import { type ExpectedOutput, selectFamily } from './output.ts'
import { detectReasoningBlock, type ReasoningTags } from './reasoning.ts'
import {
  genericCallFormat,
  selectCallFormat,
  selectContentPrefix,
  selectTaggedFormat,
} from './tool-calls/call-formats.ts'
import { hasMessageMarkup, type ToolCallFamily } from './tool-calls/detect.ts'

/** Reasoning blocks of families with message markup. */
const messageBlocks: Partial<Record<ToolCallFamily, ReasoningTags>> = {
  harmony: { open: '<|channel|>analysis<|message|>', close: '<|end|><|start|>assistant' },
  solar: { open: '<|think|>', close: '<|end|><|begin|>assistant' },
  muse: { open: ' to=self<|message|>', close: '<|eom|><|start|>assistant' },
  'kimi-k3': { open: '<|open|>think<|sep|>', close: '<|close|>think<|sep|>' },
}

/** Returns the reasoning block before an answer of a family with message markup. */
function selectMessageBlock(
  family: ToolCallFamily,
  prompt: string,
): (ReasoningTags & { readonly isOpen: boolean }) | undefined {
  const tags = messageBlocks[family]
  if (!tags) return undefined
  if (prompt.endsWith(tags.open)) return { ...tags, isOpen: true }
  return prompt.endsWith('assistant') ? { ...tags, isOpen: false } : undefined
}

/** Returns `undefined` if any text is valid output. */
export function buildOutputConstraint(
  { format, reasoning, input }: Pick<GenerateRequest, 'format' | 'reasoning' | 'input'>,
  expected: ExpectedOutput,
): OutputConstraint | undefined {
  const { template, templateFeatures, prompt, tools, isConstrained = false } = expected
  const family = selectFamily(expected)
  const callFormat =
    selectCallFormat(expected) ?? (isConstrained ? genericCallFormat : selectTaggedFormat(expected))
  const calls = tools.length > 0 ? callFormat : undefined
  const isRequired = input.kind === 'chat' && input.toolChoice?.mode === 'required'
  if (!format && !(calls && (isRequired || calls.mark !== undefined || calls.isWholeOutput))) return undefined
  // Reasoning is unbounded text in a grammar, so it is allowed only if requested.
  const reasoningBlock = hasMessageMarkup(family)
    ? selectMessageBlock(family, prompt)
    : reasoning !== undefined
      ? detectReasoningBlock(prompt, template, reasoning === true, templateFeatures?.thinking)
      : undefined
  const allTools = input.kind === 'chat' ? (input.tools ?? []) : []
  const toolsWithFields = tools.map((tool) => ({
    ...tool,
    field: `tools[${allTools.indexOf(tool)}].parameters`,
  }))
  const isParallel = input.kind !== 'chat' || input.toolChoice?.parallel !== false
  return {
    contentPrefix: selectContentPrefix({ family, prompt }),
    ...(reasoningBlock && { reasoningBlock }),
    ...(format && { format }),
    ...(calls && { calls: { tools: toolsWithFields, format: calls, isRequired, isParallel } }),
  }
}
