/** Which family a model is of, by what its chat template says. */
import { deepseek } from './deepseek.ts'
import { functionary } from './functionary.ts'
import { gemma } from './gemma.ts'
import { generic } from './generic.ts'
import { glm } from './glm.ts'
import { granite } from './granite.ts'
import { harmony } from './harmony.ts'
import { hermes } from './hermes.ts'
import { llama3 } from './llama3.ts'
import { mistral } from './mistral.ts'
import type { ToolCallParser } from './parser-context.ts'
import { qwenCoder } from './qwen-coder.ts'

export const toolCallParsers = {
  harmony,
  gemma,
  deepseek,
  mistral,
  functionary,
  'qwen-coder': qwenCoder,
  glm,
  granite,
  hermes,
  llama3,
  generic,
} as const satisfies Record<string, ToolCallParser>

export type ToolCallFamily = keyof typeof toolCallParsers

/** The first whose signs a template has all. */
const familySignatures: readonly (readonly [ToolCallFamily, ...RegExp[]])[] = [
  ['harmony', /<\|channel\|>/, /<\|message\|>/],
  ['gemma', /<\|tool_call>|<start_function_call>/],
  ['deepseek', /<｜tool▁call▁begin｜>|｜DSML｜/],
  ['mistral', /\[TOOL_CALLS\]/],
  ['functionary', />>>\$\{recipient\}|>>>all/],
  ['qwen-coder', /<function=/, /<parameter=/],
  ['functionary', /<function=/],
  ['glm', /<arg_key>/],
  ['granite', /<\|tool_call\|>|<\|start_of_role\|>/],
  // MiniMax has tags of the same name, and others in them.
  ['hermes', /^(?!.*<invoke)/s, /<tool_calls?>|<TOOLCALL>|<\|START_ACTION\|>/],
  ['llama3', /<\|start_header_id\|>/],
]

/**
 * Whether it lists the tools that it is given. Some write calls and results, and leave the tools to whoever writes the
 * system message.
 */
export const listsTools = (template: string): boolean => /\btools\b|\.Tools\b/.test(template)

/** gpt-oss writes in its own way, with tools and without; others that are told of tools by us answer as we say. */
export function detectFamily(template: string): ToolCallFamily {
  const [family = 'generic'] =
    familySignatures.find(([, ...all]) => all.every((sign) => sign.test(template))) ?? []
  return family === 'harmony' || listsTools(template) ? family : 'generic'
}
