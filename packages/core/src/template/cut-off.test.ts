/** Answers that the token limit ends inside markup. */
import { expect, test } from 'vitest'
import { parseOutput } from './output.ts'
import { detectFamily } from './tool-calls/detect.ts'
import { fixtureFamilies } from './tool-calls/fixtures/families.ts'
import { tools } from './tool-calls/fixtures/fixture.ts'

const templateOf = (family: string): string =>
  fixtureFamilies.find(({ name }) => name === family)?.template ?? ''

function textsOf(family: string, answer: string, prompt: string) {
  const template = templateOf(family)
  const parser = parseOutput({ template, family: detectFamily(template), prompt, reasoning: true, tools })
  const parts = [...parser.push(answer), ...parser.flush(true)]
  const join = (type: string) =>
    parts.flatMap((part) => (part.type === type && 'text' in part ? [part.text] : [])).join('')
  return { text: join('text'), reasoning: join('reasoning') }
}

test.each([
  ['hermes', '<tool_call>', ''],
  ['hermes', 'Let me see.<tool_call>\n{"name": "get_w', 'Let me see.'],
  ['hermes', 'Let me see.<tool_', 'Let me see.'],
  ['gemma', 'I look.<|tool_call>call:get_', 'I look.'],
  ['mistral', '[TOOL_CALLS]get_weather', ''],
  ['glm', 'I look.<tool_call>get_we', 'I look.'],
  ['minimax', 'I look.<minimax:tool_call>\n<invoke name="get_', 'I look.'],
  ['apertus', 'I look.<|tools_prefix|>[{"get_', 'I look.'],
  ['lfm2', 'I look.<|tool_call_start|>[get_', 'I look.'],
])('%s: a call that is cut off before its arguments is not text: %j', (family, answer, text) => {
  expect(textsOf(family, answer, '').text).toBe(text)
})

test.each([
  ['harmony', '<|channel|>', '', ''],
  ['harmony', '<|channel|>analysis', '', ''],
  ['harmony', '<|channel|>analysis<|message|>Hm', '', 'Hm'],
  ['harmony', '<|channel|>analysis<|message|>Hm<|end|><|start|>assistant', '', 'Hm'],
  ['muse', ' to', ' to', ''],
  ['muse', ' to=self', '', ''],
  ['muse', ' to=self<|message|>Hm', '', 'Hm'],
  ['muse', ' to=self<|message|>Hm<|eom|><|start|>assistant to=user', '', 'Hm'],
  ['solar', '<|think|>', '', ''],
  ['solar', '<|think|>Hm<|end|><|begin|>assistant', '', 'Hm'],
  ['kimi-k3', '<|open|>think', '', ''],
  ['kimi-k3', '<|open|>think<|sep|>Hm<|close|>think', '', 'Hm'],
  ['kimi-k3', '<|open|>think<|sep|>Hm<|close|>think<|sep|><|open|>response', '', 'Hm'],
])('%s: markup that is cut off is neither text nor reasoning: %j', (family, answer, text, reasoning) => {
  expect(textsOf(family, answer, 'assistant')).toEqual({ text, reasoning })
})
