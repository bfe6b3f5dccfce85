/** Detects the tool-call family of a model from its chat template. */
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

/** A template belongs to the first family whose patterns all match. */
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
  // MiniMax has the same outer tags with other markup inside.
  ['hermes', /^(?!.*<invoke)/s, /<tool_calls?>|<TOOLCALL>|<\|START_ACTION\|>/],
  ['llama3', /<\|start_header_id\|>/],
]

/** Whether a template lists the tools. Some render calls and results but leave the tools to the system message. */
export const listsTools = (template: string): boolean => /\btools\b|\.Tools\b/.test(template)

/** Harmony markup applies with and without tools. Templates that do not list tools get our description, and so the generic format. */
export function detectFamily(template: string): ToolCallFamily {
  const [family = 'generic'] =
    familySignatures.find(([, ...all]) => all.every((sign) => sign.test(template))) ?? []
  return family === 'harmony' || listsTools(template) ? family : 'generic'
}
