/** Models in place of those that llama.cpp's tests download. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { text, u32 } from '../support/gguf.ts'
import { fileOf, partsOf } from '../support/gguf-parts.ts'
import { encoderModel, noiseModel } from '../support/models.ts'
import type { Flags } from './flags.ts'

/** Files by the names of repositories and files. @param rankingModel path of a model with a classification head */
export const standIns = (rankingModel: string): Readonly<Record<string, string>> => ({
  'ggml-org/test-model-stories260K': noiseModel,
  'ggml-org/models/bert-bge-small/ggml-model-f16.gguf': encoderModel,
  'ggml-org/models/jina-reranker-v1-tiny-en/ggml-model-f16.gguf': rankingModel,
})

const [countType, textType] = [4, 8]
const poolingTypes: Readonly<Record<string, number>> = { none: 0, mean: 1, cls: 2, last: 3, rank: 4 }

/** Templates that llama.cpp has by name, as Jinja. */
const namedTemplates: Readonly<Record<string, string>> = {
  chatml:
    '{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}',
  llama3:
    '{% for message in messages %}<|start_header_id|>{{ message.role }}<|end_header_id|>\n\n{{ message.content | trim }}<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}',
  'command-r':
    "{% for message in messages %}<|START_OF_TURN_TOKEN|>{% if message.role == 'system' %}<|SYSTEM_TOKEN|>{% elif message.role == 'user' %}<|USER_TOKEN|>{% else %}<|CHATBOT_TOKEN|>{% endif %}{{ message.content | trim }}<|END_OF_TURN_TOKEN|>{% endfor %}{% if add_generation_prompt %}<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{% endif %}",
}

/** The model with the template and the pooling of the flags, or nothing if they leave it unchanged. */
export function withChanges(model: string, flags: Flags, directory: string): Buffer | undefined {
  const template = templateOf(flags, directory)
  const { pooling } = flags
  if (template === undefined && pooling === undefined) return undefined
  const parts = partsOf(readFileSync(model))
  const entries = new Map(parts.entries)
  if (template !== undefined) entries.set('tokenizer.chat_template', [textType, text(template)])
  if (pooling !== undefined) entries.set('bert.pooling_type', [countType, u32(poolingTypes[pooling] ?? 0)])
  return fileOf({ ...parts, entries })
}

function templateOf(flags: Flags, directory: string): string | undefined {
  const { 'chat-template': name, 'chat-template-file': file } = flags
  if (file !== undefined) return readFileSync(resolve(directory, file), 'utf8')
  return name === undefined ? undefined : (namedTemplates[name] ?? name)
}
