/** How a model writes, by the template that its prompt is made with: the one of its file, or one in Go's language. */
import { invalidRequest } from '../../../../errors.ts'
import {
  GoTemplateError,
  parseGoTemplate,
  type TemplateFeatures,
} from '../../../../template/go-template/index.ts'
import type { ExpectedOutput } from '../../../../template/output.ts'
import { type GenerateRequest, isRaw } from '../../../request.ts'
import type { RuntimeModel } from '../model.ts'

interface RequestTemplate {
  readonly source: string
  readonly uses: TemplateFeatures
}

/** The last one: most calls bring the same, and each asks for it more than once. */
let lastParsed: RequestTemplate | undefined

/** Nothing where the model's own is used. Throws `invalid_request` for one that is wrong. */
export function parseRequestTemplate({ template }: GenerateRequest['input']): RequestTemplate | undefined {
  if (typeof template !== 'string') return undefined
  try {
    if (lastParsed?.source !== template)
      lastParsed = { source: template, uses: parseGoTemplate(template).features }
    return lastParsed
  } catch (cause) {
    if (!(cause instanceof GoTemplateError)) throw cause
    throw invalidRequest(`template error: ${cause.message}`, { param: 'template' })
  }
}

/** One that shows a place for thoughts does not decide by itself: it is told to think. */
export const resolveReasoning = (
  { reasoning }: Pick<GenerateRequest, 'reasoning'>,
  go: Pick<RequestTemplate, 'uses'> | undefined,
): GenerateRequest['reasoning'] => (reasoning === 'auto' && go?.uses.thinking ? true : reasoning)

/** By what its answer is read. */
export function templateProfileOf(
  input: GenerateRequest['input'],
  { template }: Pick<RuntimeModel, 'template'>,
): Pick<ExpectedOutput, 'template' | 'templateFeatures'> {
  if (isRaw(input)) return { template: '' }
  const go = parseRequestTemplate(input)
  if (!go) return { template: template.source }
  // Who is told of tools in words answers as asked for there.
  return go.uses.tools
    ? { template: go.source, templateFeatures: go.uses }
    : { template: '', templateFeatures: thinkingOnly(go.uses) }
}

const thinkingOnly = ({ thinking }: TemplateFeatures): Pick<TemplateFeatures, 'thinking'> =>
  thinking ? { thinking } : {}
