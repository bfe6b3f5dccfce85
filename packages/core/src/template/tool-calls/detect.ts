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
  // Excludes MiniMax, which has the same outer tags but other markup inside them.
  ['hermes', /^(?!.*<invoke)/s, /<tool_calls?>|<TOOLCALL>|<\|START_ACTION\|>/],
  ['llama3', /<\|start_header_id\|>/],
]

/**
 * Whether a template lists the tools. Some templates render calls and results, but expect the tools in the
 * system message.
 */
export const listsTools = (template: string): boolean => /\btools\b|\.Tools\b/.test(template)

/**
 * Detects `harmony` with and without tools, because all output of gpt-oss has this markup. If another
 * template does not list the tools, the prompt describes them in plain text and asks for the generic format.
 */
export function detectFamily(template: string): ToolCallFamily {
  const [family = 'generic'] =
    familySignatures.find(([, ...all]) => all.every((sign) => sign.test(template))) ?? []
  return family === 'harmony' || listsTools(template) ? family : 'generic'
}
