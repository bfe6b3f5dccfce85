/** Prompts that differ from those of llama.cpp, each with the reason. */
import type { RecordedRequest } from './release.mjs'

type Condition = (request: RecordedRequest) => boolean

interface Difference {
  readonly why: string
  /** Names of templates, or the start of their names. */
  readonly templates: readonly string[]
  readonly differs: Condition
}

const named =
  (...names: readonly string[]): Condition =>
  ({ name }) =>
    names.includes(name)
const hasCalls: Condition = ({ messages }) => messages.some((message) => 'tool_calls' in message)
const usesTools: Condition = (request) => request.tools !== undefined || hasCalls(request)
const hasReasoning: Condition = ({ messages }) => messages.some((message) => 'reasoning_content' in message)
const hasSystem: Condition = ({ messages }) => messages.some(({ role }) => role === 'system')

const twoUserMessages = 'two user messages in a row'
const lateSystem = 'a late system message'
const continued = named('a message to continue')

const pythonTemplates = ['NVIDIA-Nemotron-3', 'Qwen3-Coder'] as const
const pythonBooleans = named('tools with large schemas')

/** Whether the two renderers write different prompts, because the template writes Boolean values. */
export const writesBooleans = (name: string, request: RecordedRequest): boolean =>
  pythonTemplates.some((start) => name.startsWith(start)) && pythonBooleans(request)

export const differences: readonly Difference[] = [
  {
    why: 'llama.cpp writes the start of an answer, mostly an empty thought, and then the text to continue. Modelmount renders the message with the template, and cuts what follows its text.',
    templates: [
      'Apriel-1.6',
      'Bielik',
      'ByteDance-Seed',
      'Cohere2MoE',
      'CohereForAI',
      'GLM-4.7',
      'HuggingFaceTB-SmolLM3',
      'Kimi-K2-Instruct',
      'Kimi-K3',
      'LFM2',
      'MiniMax-M2',
      'MiniMax-M3',
      'NVIDIA',
      'Qwen-QwQ',
      'Reka',
      'Spark',
      'StepFun',
      'deepseek-ai-DeepSeek-R1',
      'deepseek-ai-DeepSeek-V3.2',
      'google-gemma-4',
      'ibm-granite-granite-3.3',
      'llama-cpp',
      'microsoft-Phi',
      'mistralai-Ministral',
      'moonshotai',
      'muse',
      'openai-gpt-oss',
      'openbmb',
      'poolside',
      'unsloth-mistral',
      'upstage',
    ],
    differs: continued,
  },
  {
    why: 'llama.cpp turns reasoning on if the request has no switch. Without a switch, these templates do not.',
    templates: [
      'Apertus',
      'Bielik',
      'Reka',
      'deepseek-ai-DeepSeek-V',
      'google-gemma-4',
      'llama-cpp-rwkv',
      'openbmb',
      'poolside-Laguna-XS',
    ],
    differs: ({ reasoning }) => reasoning === undefined,
  },
  {
    why: 'The template does not list the tools, so Modelmount describes them in words. llama.cpp leaves them out, or writes calls in a format that the prompt does not explain.',
    templates: [
      'CohereForAI-c4ai-command-r-plus',
      'HuggingFaceTB-SmolLM3',
      'deepseek-ai-DeepSeek-R1',
      'deepseek-ai-DeepSeek-V3.1',
      'fireworks',
      'google-gemma-2',
      'llama-cpp-rwkv',
      'microsoft-Phi',
    ],
    differs: usesTools,
  },
  {
    why: 'The template has no place for calls. Modelmount writes them as text, as the model does. llama.cpp leaves them out.',
    templates: ['LFM2-', 'LFM2.5-Instruct', 'ibm-granite-granite-3.3'],
    differs: hasCalls,
  },
  {
    why: 'The role of a result is the name of its tool, if the message has a name. Modelmount always adds it.',
    templates: ['Kimi-K2-'],
    differs: hasCalls,
  },
  {
    why: 'The template rejects these roles, and so does llama.cpp. Modelmount changes the roles.',
    templates: ['Mistral-Small', 'google-gemma-2', 'mistralai'],
    differs: named(twoUserMessages, lateSystem),
  },
  {
    why: 'The template rejects these roles, and so does llama.cpp. Modelmount changes the roles.',
    templates: ['Apertus', 'Qwen3.5'],
    differs: named(lateSystem),
  },
  {
    why: 'The template accepts one call per message, and llama.cpp rejects two or leaves out the second. Modelmount splits the message.',
    templates: ['meta-llama', 'openai-gpt-oss'],
    differs: named('parallel calls'),
  },
  {
    why: 'The template accepts no system message. llama.cpp joins it and the first message with one line break, Modelmount with two.',
    templates: ['google-gemma-2'],
    differs: hasSystem,
  },
  {
    why: 'The template needs a switch that llama.cpp does not know: `reasoning`.',
    templates: ['Cohere2MoE'],
    differs: ({ reasoning }) => reasoning === false,
  },
  {
    why: 'The template needs a switch that llama.cpp does not know: `reasoning_effort`.',
    templates: ['tencent'],
    differs: ({ reasoning }) => reasoning === true,
  },
  {
    why: '@huggingface/jinja writes Boolean values as `true` and `false`, and llama.cpp as `True` and `False`.',
    templates: pythonTemplates,
    differs: pythonBooleans,
  },
  {
    why: 'llama.cpp passes parts for reasoning, which the template does not support, and so loses the text, too.',
    templates: ['unsloth-mistral'],
    differs: (request) => hasReasoning(request) && request.name !== 'a call after reasoning',
  },
  {
    why: 'The older template of Gemma 4 has one text for calls, results and answer. llama.cpp drops the text before the calls.',
    templates: ['google-gemma-4-31B-it-interleaved'],
    differs: named('a call with text, and its answer'),
  },
]
