/** Which family a model is of, by what its chat template says. */
export type ToolCallFamily =
  | 'harmony'
  | 'gemma'
  | 'deepseek'
  | 'mistral'
  | 'functionary'
  | 'qwen-coder'
  | 'glm'
  | 'granite'
  | 'hermes'
  | 'llama3'
  | 'generic'

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
