/** What is kept of a model beside its layers. Shape: Ollama `types/model/config.go`, with its order and its constants. */
import type { CreateModel } from '../modelfile/create.ts'
import type { ModelConfig } from './manifest.ts'
import type { Weights } from './weights.ts'

type Written = ModelConfig & { readonly architecture: string; readonly os: string }

export function configOf(
  { info = {}, ...spec }: CreateModel,
  { config: before, models }: Pick<Weights, 'config' | 'models'>,
): Written {
  const [main] = models
  const told = (field: string): string => String(info[field] ?? '')
  const families = [told('model_family'), ...models.map(({ architecture }) => architecture)].filter(Boolean)
  const optional = {
    renderer: spec.renderer || before.renderer,
    parser: spec.parser || before.parser,
    requires: spec.requires || before.requires,
    capabilities: info.capabilities as readonly string[] | undefined,
    context_length: info.context_length as number | undefined,
    embedding_length: info.embedding_length as number | undefined,
    base_name: told('base_name'),
  }
  return {
    model_format: main ? 'gguf' : '',
    model_family: families[0] ?? '',
    model_families: families.length > 0 ? families : null,
    model_type: told('parameter_size') || (main?.parameterSize ?? ''),
    file_type: told('quantization_level') || (main?.quantization ?? ''),
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => isGiven(value))),
    architecture: 'amd64',
    os: 'linux',
  }
}

/** Go leaves out what is empty. */
const isGiven = (value: unknown): boolean => (Array.isArray(value) ? value.length > 0 : Boolean(value))
