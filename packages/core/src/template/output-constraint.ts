/** What an answer has to be, as its model writes it: for a grammar, so that it is read back as what was asked for. */
import type { GenerateRequest } from '../engine/request.ts'
import type { AnswerForm } from '../grammar/output-grammar.ts'
import type { Expected } from './output.ts'
import { thoughtOf } from './reasoning.ts'
import { familyOf } from './tool-calls/detect.ts'
import { callFormOf, genericForm, leadOf } from './tool-calls/forms.ts'

/** What of gpt-oss stands in front of its answer, if it thinks. */
const analysis = {
  open: '<|channel|>analysis<|message|>',
  close: '<|end|><|start|>assistant',
  isOpen: false,
} as const

/** `undefined` where any text will do. */
export function answerForm(
  { format, reasoning, input }: Pick<GenerateRequest, 'format' | 'reasoning' | 'input'>,
  { template, shown, prompt, tools, held = false }: Expected,
): AnswerForm | undefined {
  const form = callFormOf(template, prompt) ?? (held ? genericForm : undefined)
  const calls = tools.length > 0 ? form : undefined
  const forced = input.kind === 'chat' && input.toolChoice?.mode === 'required'
  if (!format && !(calls && (forced || calls.mark !== undefined))) return undefined
  const isHarmony = familyOf(template) === 'harmony' && prompt.endsWith('assistant')
  // Nobody is led to think who was not told to: thoughts have no end that a grammar knows.
  const told = reasoning !== undefined && familyOf(template) !== 'harmony'
  const thought = told
    ? thoughtOf(prompt, template, reasoning === true, shown?.thinking)
    : isHarmony
      ? analysis
      : undefined
  const all = input.kind === 'chat' ? (input.tools ?? []) : []
  const fields = tools.map((tool) => ({ ...tool, field: `tools[${all.indexOf(tool)}].parameters` }))
  const parallel = input.kind !== 'chat' || input.toolChoice?.parallel !== false
  return {
    lead: leadOf(template, prompt),
    ...(thought && { thought }),
    ...(format && { format }),
    ...(calls && { calls: { tools: fields, form: calls, forced, parallel } }),
  }
}
