/** Translates a request to `POST /v1/completions`. */
import type { GenerateRequest, InfillInput, TextInput } from '../../request.ts'
import { unsupportedByUpstream } from '../upstream-errors.ts'
import { limitOf, toCommonFields } from './sampling-fields.ts'
import type { ServerFeatures } from './server-kind.ts'

export function toCompletionRequest(
  request: GenerateRequest,
  input: TextInput | InfillInput,
  features: ServerFeatures,
  tenant: string | undefined,
): object {
  const { logprobs } = request
  return {
    ...toCommonFields(request, features, tenant),
    max_tokens: limitOf(request) ?? features.unlimited,
    ...(input.kind === 'infill' ? toInfill(input, features) : { prompt: toPrompt(input.prompt) }),
    ...(logprobs !== undefined && { logprobs }),
  }
}

function toInfill({ prefix, suffix, template }: InfillInput, { hasSuffix }: ServerFeatures): object {
  if (!hasSuffix || template !== undefined) throw unsupportedByUpstream('fill-in-the-middle', 'suffix')
  return { prompt: prefix, suffix }
}

function toPrompt(prompt: TextInput['prompt']): string | readonly number[] {
  if (prompt.every((piece) => typeof piece === 'string')) return prompt.join('')
  if (prompt.every((piece) => typeof piece !== 'string')) return prompt.flat()
  throw unsupportedByUpstream('a prompt of texts and token ids', 'prompt')
}
