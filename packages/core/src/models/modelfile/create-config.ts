/** The configuration blob of a new model. Key order and constants follow Ollama's `types/model/config.go`. */

import type { ModelConfig } from '../ollama-store/manifest.ts'
import type { Weights } from '../ollama-store/weights.ts'
import type { CreateModelRequest } from './create-request.ts'

type WrittenConfig = ModelConfig & { readonly architecture: string; readonly os: string }

export function createConfig(
  { info = {}, ...spec }: CreateModelRequest,
  { config: before, models }: Pick<Weights, 'config' | 'models'>,
): WrittenConfig {
  const [main] = models
  const infoText = (field: string): string => String(info[field] ?? '')
  const families = [infoText('model_family'), ...models.map(({ architecture }) => architecture)].filter(
    Boolean,
  )
  const optional = {
    renderer: spec.renderer || before.renderer,
    parser: spec.parser || before.parser,
    requires: spec.requires || before.requires,
    capabilities: info.capabilities as readonly string[] | undefined,
    context_length: info.context_length as number | undefined,
    embedding_length: info.embedding_length as number | undefined,
    base_name: infoText('base_name'),
  }
  return {
    model_format: main ? 'gguf' : '',
    model_family: families[0] ?? '',
    model_families: families.length > 0 ? families : null,
    model_type: infoText('parameter_size') || (main?.parameterSize ?? ''),
    file_type: infoText('quantization_level') || (main?.quantization ?? ''),
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => isPresent(value))),
    architecture: 'amd64',
    os: 'linux',
  }
}

/** Whether the value is written. Empty values are omitted, like fields with `omitempty` in Go. */
const isPresent = (value: unknown): boolean => (Array.isArray(value) ? value.length > 0 : Boolean(value))
