/**
 * Tool-call format that a grammar enforces, per model family. Required tool calls of families that do not write
 * arguments as JSON or literals get the generic JSON format. No grammar constrains optional calls of Kimi K3, MiniMax-M3,
 * MiniCPM5, LFM2, Solar Open, Muse and Hunyuan 3.
 */
import type { ToolCallFormat } from '../../grammar/constraint.ts'
import type { ToolCallFamily } from './detect.ts'

const jsonCall = ['{"name": "', '", "arguments": ', '}'] as const
const jsonList = { open: ' [', call: jsonCall, separator: ', ' } as const

/** Format that the plain-text description of the tools asks the model to use. */
export const genericCallFormat: ToolCallFormat = { call: jsonCall, separator: '\n' }

const betweenTags: ToolCallFormat = {
  mark: '<tool_call>',
  call: ['\n{"name": "', '", "arguments": ', '}\n</tool_call>'],
  separator: '\n<tool_call>',
}
const listFormats: readonly ToolCallFormat[] = [
  { mark: '<TOOLCALL>', ...jsonList, close: ']</TOOLCALL>' },
  { mark: '<tool_calls>', ...jsonList, close: ']</tool_calls>' },
  {
    mark: '<|START_ACTION|>',
    open: '[\n',
    call: ['    {"tool_name": "', '", "parameters": ', '}'],
    separator: ',\n',
    close: '\n]<|END_ACTION|>',
  },
]
const granite3: ToolCallFormat = { mark: '<|tool_call|>', ...jsonList, close: ']' }
const mistral: ToolCallFormat = { mark: '[TOOL_CALLS]', ...jsonList, close: ']' }
const mistral2025: ToolCallFormat = {
  mark: '[TOOL_CALLS]',
  call: ['', '[ARGS]', ''],
  separator: '[TOOL_CALLS]',
}
const deepseekR1: ToolCallFormat = {
  mark: '<｜tool▁calls▁begin｜>',
  call: ['<｜tool▁call▁begin｜>function<｜tool▁sep｜>', '\n```json\n', '\n```<｜tool▁call▁end｜>'],
  separator: '\n',
  close: '<｜tool▁calls▁end｜>',
}
const deepseekV31: ToolCallFormat = {
  mark: '<｜tool▁calls▁begin｜>',
  call: ['<｜tool▁call▁begin｜>', '<｜tool▁sep｜>', '<｜tool▁call▁end｜>'],
  separator: '',
  close: '<｜tool▁calls▁end｜>',
}
const functionary31: ToolCallFormat = {
  mark: '<function=',
  call: ['', '>', '</function>'],
  separator: '\n<function=',
}
/** Has no mark. Text messages also start with a recipient, so calls never appear inside free text. */
const functionary32: ToolCallFormat = { call: ['', '\n', ''], separator: '>>>' }
/** Has no separator, because a message contains one call. */
const llama3: ToolCallFormat = { call: ['{"name": "', '", "parameters": ', '}'], isWholeOutput: true }
const qwenCoder = (mark: string, end: string): ToolCallFormat => ({
  mark,
  call: ['\n<function=', '>\n', `</function>\n${end}`],
  parameters: { open: '<parameter=', keyEnds: ['>', '>'], valueEnd: '</parameter>' },
  separator: `\n${mark}`,
})
const glm: ToolCallFormat = {
  mark: '<tool_call>',
  call: ['', '\n', '</tool_call>'],
  parameters: {
    open: '<arg_key>',
    keyEnds: ['</arg_key>\n<arg_value>', '</arg_key>\n<arg_value>'],
    valueEnd: '</arg_value>',
  },
  separator: '\n<tool_call>',
}
const deepseekDsml = (block: string): ToolCallFormat => ({
  mark: `<｜DSML｜${block}>`,
  call: ['\n<｜DSML｜invoke name="', '">\n', '</｜DSML｜invoke>'],
  parameters: {
    open: '<｜DSML｜parameter name="',
    keyEnds: ['" string="true">', '" string="false">'],
    valueEnd: '</｜DSML｜parameter>',
  },
  separator: '\n',
  close: `\n</｜DSML｜${block}>`,
})
const minimax: ToolCallFormat = {
  mark: '<minimax:tool_call>',
  call: ['\n<invoke name="', '">\n', '</invoke>'],
  parameters: { open: '<parameter name="', keyEnds: ['">', '">'], valueEnd: '</parameter>' },
  separator: '\n',
  close: '\n</minimax:tool_call>',
}
/** Calls have consecutive numbers, also those of earlier messages. A grammar accepts any number up to 99. */
const kimi: ToolCallFormat = {
  mark: '<|tool_calls_section_begin|>',
  call: [
    '<|tool_call_begin|>functions.',
    Array.from({ length: 100 }, (_, index) => `:${index}<|tool_call_argument_begin|>`),
    '<|tool_call_end|>',
  ],
  separator: '',
  close: '<|tool_calls_section_end|>',
}
const gigachat3: ToolCallFormat = {
  mark: '<|message_sep|>',
  open: '\n\nfunction call<|role_sep|>\n',
  call: jsonCall,
}
const gigachat31: ToolCallFormat = { mark: '<|function_call|>', call: jsonCall }
const apertus: ToolCallFormat = {
  mark: '<|tools_prefix|>',
  open: '[',
  call: ['{"', '": ', '}'],
  separator: ', ',
  close: ']<|tools_suffix|>',
}
const gemma4: ToolCallFormat = {
  mark: '<|tool_call>',
  call: ['call:', '', '<tool_call|>'],
  quote: '<|"|>',
  separator: '<|tool_call>',
}
const functionGemma: ToolCallFormat = {
  mark: '<start_function_call>',
  call: ['call:', '', '<end_function_call>'],
  quote: '<escape>',
  separator: '<start_function_call>',
}
const harmony: ToolCallFormat = {
  prefix: '<|channel|>commentary ',
  mark: 'to=functions.',
  call: [
    '',
    [
      ' <|constrain|>json<|message|>',
      ' json<|message|>',
      '<|channel|>commentary <|constrain|>json<|message|>',
      '<|channel|>commentary json<|message|>',
      '<|message|>',
    ],
    '',
  ],
}

interface FormatContext {
  readonly template: string
  readonly family: ToolCallFamily
  /** The end of the prompt. */
  readonly prompt: string
}

export function selectCallFormat({ template, family, prompt }: FormatContext): ToolCallFormat | undefined {
  switch (family) {
    case 'hermes':
      return listFormats.find(({ mark = '' }) => template.includes(mark)) ?? betweenTags
    case 'granite':
      return template.includes('<tool_call>') ? betweenTags : granite3
    case 'mistral':
      return template.includes('[ARGS]') ? mistral2025 : mistral
    case 'deepseek':
      if (template.includes('｜DSML｜')) return undefined
      return template.includes('```json') ? deepseekR1 : deepseekV31
    case 'functionary':
      return prompt.endsWith('>>>') ? functionary32 : functionary31
    case 'llama3':
      return llama3
    case 'harmony':
      return harmony
    case 'kimi':
      return kimi
    case 'gigachat':
      return template.includes('<|function_call|>') ? gigachat31 : gigachat3
    case 'apertus':
      return apertus
    case 'gemma':
      return template.includes('<start_function_call>') ? functionGemma : gemma4
    case 'generic':
      return genericCallFormat
    default:
      return undefined
  }
}

/**
 * Selects the format of optional calls whose arguments are not JSON. A schema constrains JSON values and
 * enumerations in it, but no other strings.
 */
export function selectTaggedFormat({
  template,
  family,
}: Omit<FormatContext, 'prompt'>): ToolCallFormat | undefined {
  switch (family) {
    case 'qwen-coder':
      return template.includes('<seed:tool_call>')
        ? qwenCoder('<seed:tool_call>', '</seed:tool_call>')
        : qwenCoder('<tool_call>', '</tool_call>')
    case 'glm':
      return template.includes('<arg_key>') ? glm : undefined
    case 'deepseek':
      return template.includes('function_calls') ? deepseekDsml('function_calls') : deepseekDsml('tool_calls')
    case 'minimax':
      return minimax
    default:
      return undefined
  }
}

/** Returns the markup before content for the user. */
export function selectContentPrefix({ family, prompt }: Omit<FormatContext, 'template'>): string {
  switch (family) {
    case 'functionary':
      return prompt.endsWith('>>>') ? 'all\n' : ''
    case 'harmony':
      return prompt.endsWith('assistant') ? '<|channel|>final<|message|>' : ''
    case 'solar':
      return prompt.endsWith('assistant') ? '<|content|>' : ''
    case 'muse':
      return prompt.endsWith('assistant') ? ' to=user<|message|>' : ''
    case 'kimi-k3':
      return /think<\|sep\|>$/.test(prompt) ? '<|open|>response<|sep|>' : ''
    default:
      return ''
  }
}
