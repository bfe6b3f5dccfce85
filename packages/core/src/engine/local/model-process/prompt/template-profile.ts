/**
 * Derives the output markup of a model from its Jinja chat template, or from the Go template of a request.
 */
import { invalidRequest } from '../../../../errors.ts'
import {
  GoTemplateError,
  parseGoTemplate,
  type TemplateFeatures,
} from '../../../../template/go-template/index.ts'
import type { ExpectedOutput } from '../../../../template/output.ts'
import type { GenerateRequest } from '../../../request.ts'
import { isRaw } from '../../../request-input.ts'
import type { RuntimeModel } from '../model.ts'

interface RequestTemplate {
  readonly source: string
  readonly uses: TemplateFeatures
}

/** The last template, parsed. Most calls use the same template, and each call needs it several times. */
let lastParsed: RequestTemplate | undefined

/**
 * Parses the Go template of a request. Returns `undefined` if the request uses the model's own template.
 * Throws an `LlmError` `invalid_request` if the template has an error.
 */
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

/**
 * Turns `auto` into `true` for a Go template with a reasoning block, since a Go template has no default for
 * reasoning.
 */
export const resolveReasoning = (
  { reasoning }: Pick<GenerateRequest, 'reasoning'>,
  go: Pick<RequestTemplate, 'uses'> | undefined,
): GenerateRequest['reasoning'] => (reasoning === 'auto' && go?.uses.thinking ? true : reasoning)

/** Selects the template whose markup the output parser expects. */
export function templateProfileOf(
  input: GenerateRequest['input'],
  { template }: Pick<RuntimeModel, 'template'>,
): Pick<ExpectedOutput, 'template' | 'templateFeatures'> {
  if (isRaw(input)) return { template: '' }
  const go = parseRequestTemplate(input)
  if (!go) return { template: template.source }
  // If the template has no `.Tools`, the prompt describes tools in words, and calls have no known markup.
  return go.uses.tools
    ? { template: go.source, templateFeatures: go.uses }
    : { template: '', templateFeatures: thinkingOnly(go.uses) }
}

const thinkingOnly = ({ thinking }: TemplateFeatures): Pick<TemplateFeatures, 'thinking'> =>
  thinking ? { thinking } : {}
