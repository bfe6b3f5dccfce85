/** The tool-call parser of each model family. */
import { deepseek } from './deepseek.ts'
import type { ToolCallFamily } from './detect.ts'
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

export const toolCallParsers: Readonly<Record<ToolCallFamily, ToolCallParser>> = {
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
}
