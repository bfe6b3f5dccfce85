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
  | 'kimi'
  | 'kimi-k3'
  | 'minimax'
  | 'minimax-m3'
  | 'gigachat'
  | 'apertus'
  | 'minicpm'
  | 'lfm2'
  | 'solar'
  | 'muse'
  | 'hermes'
  | 'llama3'
  | 'generic'

/** A template belongs to the first family whose patterns all match. */
const familySignatures: readonly (readonly [ToolCallFamily, ...RegExp[]])[] = [
  ['muse', /<atem:function_calls>/],
  ['solar', /<\|tool_call:begin\|>/],
  ['kimi', /<\|tool_call_begin\|>/],
  ['kimi-k3', /<\|end_of_msg\|>/],
  ['minimax-m3', /\]<\]minimax\[>\[/],
  ['minimax', /<minimax:tool_call>/],
  ['gigachat', /<\|role_sep\|>/],
  ['apertus', /<\|tools_prefix\|>/],
  ['minicpm', /<function name="/, /<param name="/],
  ['lfm2', /<\|tool_list_start\|>|List of tools: \[/],
  ['harmony', /<\|channel\|>/, /<\|message\|>/],
  ['gemma', /<\|tool_call>|<start_function_call>/],
  ['deepseek', /<｜tool▁call▁begin｜>|｜DSML｜/],
  ['mistral', /\[TOOL_CALLS\]/],
  ['functionary', />>>\$\{recipient\}|>>>all/],
  ['qwen-coder', /<function=/, /<parameter=/],
  ['functionary', /<function=/],
  ['glm', /<arg_key(?:\{\})?>/],
  ['granite', /<\|tool_call\|>|<\|start_of_role\|>/],
  ['hermes', /<tool_calls?>|<TOOLCALL>|<\|START_ACTION\|>/],
  ['llama3', /<\|start_header_id\|>/],
]

/**
 * Whether a template lists the tools. Some templates render calls and results, but expect the tools in the
 * system message.
 */
export const listsTools = (template: string): boolean => /\btools\b|\.Tools\b/.test(template)

/** Whether all output of the family has markup, also text without calls. */
export const hasMessageMarkup = (family: ToolCallFamily): boolean =>
  family === 'harmony' || family === 'kimi-k3' || family === 'solar' || family === 'muse'

/**
 * Detects families with message markup with and without tools. If another
 * template does not list the tools, the prompt describes them in plain text and asks for the generic format.
 */
export function detectFamily(template: string): ToolCallFamily {
  const [family = 'generic'] =
    familySignatures.find(([, ...all]) => all.every((sign) => sign.test(template))) ?? []
  return hasMessageMarkup(family) || listsTools(template) ? family : 'generic'
}
