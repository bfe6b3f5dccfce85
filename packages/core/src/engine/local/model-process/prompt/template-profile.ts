/** How a model writes, by the template that its prompt is made with: the one of its file, or one in Go's language. */
import { invalidRequest } from '../../../../errors.ts'
import { GoTemplateError, parseGoTemplate, type Uses } from '../../../../template/go-template/index.ts'
import type { Expected } from '../../../../template/output.ts'
import { type GenerateRequest, isRaw } from '../../../request.ts'
import type { Binding } from '../model.ts'

interface GoTemplate {
  readonly source: string
  readonly uses: Uses
}

/** The last one: most calls bring the same, and each asks for it more than once. */
let last: GoTemplate | undefined

/** Nothing where the model's own is used. Throws `invalid_request` for one that is wrong. */
export function goTemplateOf({ template }: GenerateRequest['input']): GoTemplate | undefined {
  if (typeof template !== 'string') return undefined
  try {
    if (last?.source !== template) last = { source: template, uses: parseGoTemplate(template).uses }
    return last
  } catch (cause) {
    if (!(cause instanceof GoTemplateError)) throw cause
    throw invalidRequest(`template error: ${cause.message}`, { param: 'template' })
  }
}

/** One that shows a place for thoughts does not decide by itself: it is told to think. */
export const toldReasoning = (
  { reasoning }: Pick<GenerateRequest, 'reasoning'>,
  go: Pick<GoTemplate, 'uses'> | undefined,
): GenerateRequest['reasoning'] => (reasoning === 'auto' && go?.uses.thinking ? true : reasoning)

/** By what its answer is read. */
export function mannerOf(
  input: GenerateRequest['input'],
  { template }: Pick<Binding, 'template'>,
): Pick<Expected, 'template' | 'shown'> {
  if (isRaw(input)) return { template: '' }
  const go = goTemplateOf(input)
  if (!go) return { template: template.source }
  // Who is told of tools in words answers as asked for there.
  return go.uses.tools
    ? { template: go.source, shown: go.uses }
    : { template: '', shown: withoutCalls(go.uses) }
}

const withoutCalls = ({ thinking }: Uses): Pick<Uses, 'thinking'> => (thinking ? { thinking } : {})
