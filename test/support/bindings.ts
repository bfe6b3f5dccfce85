/** Runs requests on models that are loaded in the test process, without a model process. */
import { modelPath } from '@modelmount/tiny-model'
import type { GenerateEvent } from '../../packages/core/src/engine/events.ts'
import { packageVersion } from '../../packages/core/src/engine/local/ipc/process-config.ts'
import type { RuntimeModel } from '../../packages/core/src/engine/local/model-process/model.ts'
import type { RunContext } from '../../packages/core/src/engine/local/model-process/run-context.ts'
import { runRequest } from '../../packages/core/src/engine/local/model-process/run-request.ts'
import type { GenerateRequest } from '../../packages/core/src/engine/request.ts'
import { buildOutputGrammar } from '../../packages/core/src/grammar/output-grammar.ts'
import { parseChatTemplate } from '../../packages/core/src/template/jinja.ts'
import { budgetOf } from './budgets.ts'

/** Load options for the built-in model. */
export const config = {
  packageVersion,
  runtimeDir: '',
  name: '',
  folder: '',
  modelPath,
  modelName: 'tiny:latest',
  fingerprint: 'fp_1',
  libraryVersion: '',
  cards: {},
  threads: 1,
  tuneThreads: false,
  contextSize: 512,
  parallel: 4,
  gpuLayers: 'auto',
  kvCacheType: 'f16',
} as const

const renderer: RunContext['renderer'] = {
  render: async ({ template, messages, options }) => parseChatTemplate(template)(messages, options),
}
const grammars: RunContext['grammars'] = { build: async (form) => buildOutputGrammar(form) }
/** The parts of `RunContext` that do not depend on the model. */
export const surroundings = { renderer, grammars } satisfies Partial<RunContext>

export async function ask(
  model: RuntimeModel,
  text: string,
  signal = new AbortController().signal,
  more: Partial<GenerateRequest> = {},
): Promise<GenerateEvent[]> {
  const events: GenerateEvent[] = []
  const input = { kind: 'text', prompt: [text] } as const
  await runRequest(
    { model: 'tiny', input, maxTokens: 40, sampling: { temperature: 0 }, ...more },
    {
      ...{ model, ...surroundings, progress: { steps: 0 }, budget: budgetOf({ signal }) },
      ...{ tenant: '', weight: 1, background: false, signal },
    },
    (event) => events.push(event),
  )
  return events
}

export const textOf = (events: readonly GenerateEvent[]): string =>
  events.map((event) => (event.type === 'text' ? event.text : '')).join('')
