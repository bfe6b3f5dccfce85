import { expect, test } from 'vitest'
import { describeModel } from './describe-model.ts'

const answer = {
  parameters: 'temperature                    0\nstop                           "<|a b|>"',
  system: 'You are Bob.\n\n  You like tea.\nAnd rain.',
  license: 'MIT',
  details: { family: 'llama', parameter_size: '3.64M', quantization_level: 'Q8_0' },
  model_info: {
    'general.architecture': 'llama',
    'llama.context_length': 8192,
    'llama.embedding_length': 256,
    'tokenizer.ggml.tokens': ['a', 'b', 'c', 'd', 'e'],
    'tokenizer.ggml.scores': null,
  },
  capabilities: ['tools', 'completion'],
  tensors: [{ name: 'output.weight', type: 'Q8_0', shape: [256, 1024] }],
}

test('describes a model as Ollama does', () => {
  expect(describeModel(answer, false)).toBe(`  Model
    architecture        llama
    parameters          3.64M
    context length      8192
    embedding length    256
    quantization        Q8_0

  Capabilities
    tools
    completion

  Parameters
    temperature    0
    stop           "<|a b|>"

  System
    You are Bob.
    You like tea.
    ...

  License
    MIT

`)
})

test('--verbose adds the metadata with cut lists, and the tensors', () => {
  const text = describeModel(answer, true)

  expect(text).toContain('    tokenizer.ggml.tokens     ["a", "b", "c", ...+2 more]\n')
  expect(text).toContain('    tokenizer.ggml.scores     null\n')
  expect(text).toContain('  Tensors\n    output.weight    Q8_0    [256 1024]\n')
})

test('omits absent parts', () => {
  const details = { family: 'bert', parameter_size: '', quantization_level: 'F16' }

  expect(describeModel({ details, model_info: {} }, true)).toBe(
    '  Model\n    architecture    bert\n    quantization    F16\n\n',
  )
})
