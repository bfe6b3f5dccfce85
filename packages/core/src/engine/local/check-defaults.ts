/** Checks the default options of a model, as the options of a request are checked. */
import { LlmError } from '../../errors.ts'
import type { ModelSettings } from '../model-settings.ts'
import { parseGenerateRequest } from '../wire/parse-request.ts'

/**
 * Throws a `TypeError` that names the wrong option.
 *
 * @param group names the settings in the error, such as `modelSettings['tiny'].`
 */
export function checkDefaults(group: string, { sampling, maxTokens, stop }: ModelSettings): void {
  try {
    parseGenerateRequest({
      ...{ model: 'any', input: { kind: 'text', prompt: [] } },
      ...{ sampling, maxTokens, stop },
    })
  } catch (cause) {
    if (!LlmError.is(cause)) throw cause
    const { param = '' } = cause.details
    throw new TypeError(`\`${group}${param}\`: ${cause.message.replace(`Invalid '${param}': `, '')}`, {
      cause,
    })
  }
}
