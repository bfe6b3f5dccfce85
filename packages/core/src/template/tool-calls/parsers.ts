/** The tool-call parser of each model family. */

import type { ToolCallFamily } from './detect.ts'
import { apertus } from './families/apertus.ts'
import { deepseek } from './families/deepseek.ts'
import { functionary } from './families/functionary.ts'
import { gemma } from './families/gemma.ts'
import { generic } from './families/generic.ts'
import { gigachat } from './families/gigachat.ts'
import { glm } from './families/glm.ts'
import { granite } from './families/granite.ts'
import { harmony } from './families/harmony.ts'
import { hermes } from './families/hermes.ts'
import { kimi } from './families/kimi.ts'
import { kimiK3 } from './families/kimi-k3.ts'
import { lfm2 } from './families/lfm2.ts'
import { llama3 } from './families/llama3.ts'
import { minicpm } from './families/minicpm.ts'
import { minimax, minimaxM3 } from './families/minimax.ts'
import { mistral } from './families/mistral.ts'
import { muse } from './families/muse.ts'
import { qwenCoder } from './families/qwen-coder.ts'
import { solar } from './families/solar.ts'
import type { ToolCallParser } from './parser-context.ts'

export const toolCallParsers: Readonly<Record<ToolCallFamily, ToolCallParser>> = {
  harmony,
  gemma,
  deepseek,
  mistral,
  functionary,
  'qwen-coder': qwenCoder,
  glm,
  granite,
  kimi,
  'kimi-k3': kimiK3,
  minimax,
  'minimax-m3': minimaxM3,
  gigachat,
  apertus,
  minicpm,
  lfm2,
  solar,
  muse,
  hermes,
  llama3,
  generic,
}
