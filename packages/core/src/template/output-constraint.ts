/**
 * Derives the output constraint of a request. The constraint uses the markup of the model family, so that the
 * output parser can parse the constrained output.
 */
import type { GenerateRequest } from '../engine/request.ts'
import type { OutputConstraint } from '../grammar/constraint.ts'
import type { ExpectedOutput } from './output.ts'
import { detectReasoningBlock } from './reasoning.ts'
import { genericCallFormat, selectCallFormat, selectContentPrefix } from './tool-calls/call-formats.ts'

/** Reasoning block of gpt-oss. */
const harmonyAnalysis = {
  open: '<|channel|>analysis<|message|>',
  close: '<|end|><|start|>assistant',
  isOpen: false,
} as const

/** Returns `undefined` if any text is valid output. */
export function buildOutputConstraint(
  { format, reasoning, input }: Pick<GenerateRequest, 'format' | 'reasoning' | 'input'>,
  expected: ExpectedOutput,
): OutputConstraint | undefined {
  const { template, family, templateFeatures, prompt, tools, isConstrained = false } = expected
  const callFormat = selectCallFormat(expected) ?? (isConstrained ? genericCallFormat : undefined)
  const calls = tools.length > 0 ? callFormat : undefined
  const isRequired = input.kind === 'chat' && input.toolChoice?.mode === 'required'
  if (!format && !(calls && (isRequired || calls.mark !== undefined))) return undefined
  const isHarmony = family === 'harmony' && prompt.endsWith('assistant')
  // Reasoning is unbounded text in a grammar, so it is allowed only if requested.
  const hasReasoning = reasoning !== undefined && family !== 'harmony'
  const reasoningBlock = hasReasoning
    ? detectReasoningBlock(prompt, template, reasoning === true, templateFeatures?.thinking)
    : isHarmony
      ? harmonyAnalysis
      : undefined
  const allTools = input.kind === 'chat' ? (input.tools ?? []) : []
  const toolsWithFields = tools.map((tool) => ({
    ...tool,
    field: `tools[${allTools.indexOf(tool)}].parameters`,
  }))
  const isParallel = input.kind !== 'chat' || input.toolChoice?.parallel !== false
  return {
    contentPrefix: selectContentPrefix(expected),
    ...(reasoningBlock && { reasoningBlock }),
    ...(format && { format }),
    ...(calls && { calls: { tools: toolsWithFields, format: calls, isRequired, isParallel } }),
  }
}
