/**
 * How each family is made to write calls, so that its parser reads them. Families whose arguments are no JSON (Gemma,
 * GLM, Qwen Coder, DeepSeek since V3.2) have none: they call freely, and as generic JSON where they are forced to.
 */
import type { CallForm } from '../../grammar/tool-call-grammar.ts'
import { familyOf } from './detect.ts'

const named = ['{"name": "', '", "arguments": ', '}'] as const
const listed = { open: ' [', call: named, separator: ', ' } as const

/** As models are asked to in plain words. */
export const genericForm: CallForm = { call: named, separator: '\n' }

const betweenTags: CallForm = {
  mark: '<tool_call>',
  call: ['\n{"name": "', '", "arguments": ', '}\n</tool_call>'],
  separator: '\n<tool_call>',
}
const lists: readonly CallForm[] = [
  { mark: '<TOOLCALL>', ...listed, close: ']</TOOLCALL>' },
  { mark: '<tool_calls>', ...listed, close: ']</tool_calls>' },
  {
    mark: '<|START_ACTION|>',
    open: '[\n',
    call: ['    {"tool_name": "', '", "parameters": ', '}'],
    separator: ',\n',
    close: '\n]<|END_ACTION|>',
  },
]
const granite3: CallForm = { mark: '<|tool_call|>', ...listed, close: ']' }
const mistral: CallForm = { mark: '[TOOL_CALLS]', ...listed, close: ']' }
const mistral2025: CallForm = {
  mark: '[TOOL_CALLS]',
  call: ['', '[ARGS]', ''],
  separator: '[TOOL_CALLS]',
}
const deepseekR1: CallForm = {
  mark: '<｜tool▁calls▁begin｜>',
  call: ['<｜tool▁call▁begin｜>function<｜tool▁sep｜>', '\n```json\n', '\n```<｜tool▁call▁end｜>'],
  separator: '\n',
  close: '<｜tool▁calls▁end｜>',
}
const deepseekV31: CallForm = {
  mark: '<｜tool▁calls▁begin｜>',
  call: ['<｜tool▁call▁begin｜>', '<｜tool▁sep｜>', '<｜tool▁call▁end｜>'],
  separator: '',
  close: '<｜tool▁calls▁end｜>',
}
const functionary31: CallForm = {
  mark: '<function=',
  call: ['', '>', '</function>'],
  separator: '\n<function=',
}
/** Its texts have a recipient, too: they are no free text with calls in it. */
const functionary32: CallForm = { call: ['', '\n', ''], separator: '>>>' }
/** One a message. */
const llama3: CallForm = { call: ['{"name": "', '", "parameters": ', '}'] }
const harmony: CallForm = {
  lead: '<|channel|>commentary ',
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

/** @param prompt how it ends */
export function callFormOf(template: string, prompt: string): CallForm | undefined {
  switch (familyOf(template)) {
    case 'hermes':
      return lists.find(({ mark = '' }) => template.includes(mark)) ?? betweenTags
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
    case 'generic':
      return genericForm
    default:
      return undefined
  }
}

/** What a model writes in front of what it says to the user. */
export function leadOf(template: string, prompt: string): string {
  switch (familyOf(template)) {
    case 'functionary':
      return prompt.endsWith('>>>') ? 'all\n' : ''
    case 'harmony':
      return prompt.endsWith('assistant') ? '<|channel|>final<|message|>' : ''
    default:
      return ''
  }
}
