/** Shows a model's details. Shape: Ollama API reference, "Show model details". */
import { LlmError, modelNotFound } from '../../errors.ts'
import { json } from '../../http/respond.ts'
import type { ModelDetails } from '../../models/gguf/model-details.ts'
import { emptyDefaults, placeholderTemplate } from '../../models/modelfile/defaults.ts'
import { renderModelfile, renderParameters } from '../../models/modelfile/show.ts'
import { displayName } from '../../models/ollama-store/name.ts'
import type { Handler } from '../dialect.ts'
import { readBody } from './body.ts'
import { cloudDisabled } from './cloud.ts'
import { parseMissingName, requireName, toDetails } from './models.ts'
import { ShowRequest } from './schema.ts'

/** `POST /api/show` */
export const show: Handler = async ({ request, llm }) => {
  const body = await readBody(request, ShowRequest, 'ShowRequest')
  const name = requireName(body)
  const model = await llm.models.get(name).catch((cause) => {
    const { alias } = LlmError.from(cause).details
    throw alias === undefined ? modelNotFound(displayName(parseMissingName(cause, name, unavailable))) : cause
  })
  if (model.config?.remote_host) throw cloudDisabled(unavailable)
  const details = await llm.models.details(model, { arrays: body.verbose ?? false })
  const { defaults = emptyDefaults, config } = model
  const system = body.system || defaults.system
  return json({
    ...(defaults.license.length > 0 && { license: defaults.license.join('\n') }),
    modelfile: renderModelfile(model),
    ...(Object.keys(defaults.parameters).length > 0 && { parameters: renderParameters(defaults.parameters) }),
    template: defaults.template ?? details.chatTemplate ?? placeholderTemplate,
    ...(system && { system }),
    details: toDetails(model, details),
    ...(defaults.messages.length > 0 && { messages: defaults.messages }),
    model_info: {
      ...toModelInfo(details),
      // Copilot Chat displays this name.
      ...(request.header('user-agent')?.startsWith('GitHubCopilotChat/') && { 'general.basename': name }),
    },
    tensors: details.tensors,
    capabilities: details.capabilities,
    modified_at: model.modifiedAt.toISOString(),
    ...(config?.requires && { requires: config.requires }),
  })
}

const unavailable = 'remote model details are unavailable'

/** Metadata of the model file, without the fields that other parts of the response contain. */
function toModelInfo({ metadata, parameterCount }: ModelDetails): object {
  const info: Record<string, unknown> = {
    'general.quantization_version': quantizationVersion,
    ...metadata,
    'general.parameter_count': parameterCount,
  }
  delete info['general.name']
  delete info['tokenizer.chat_template']
  return Object.fromEntries(Object.entries(info).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** llama.cpp's default for files without `general.quantization_version`. */
const quantizationVersion = 2
