/**
 * Renders all chat templates of llama.cpp's release with 20 conversations, and compares the prompts with those
 * of llama.cpp, which `record.mjs` recorded.
 */
import { readFileSync } from 'node:fs'
import { brotliDecompressSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { toMessages } from '../../packages/core/src/dialects/openai/messages.ts'
import type {
  NativeJob,
  NativeResult,
} from '../../packages/core/src/engine/local/model-process/render-job.ts'
import {
  BoundedWorker,
  startProcess,
} from '../../packages/core/src/engine/local/model-process/workers/bounded-worker.ts'
import { CpuMeter } from '../../packages/core/src/engine/local/model-process/workers/cpu-meter.ts'
import { invalidRequest } from '../../packages/core/src/errors.ts'
import { toPrompt } from '../../packages/core/src/template/continuation.ts'
import { createTemplateInputBuilder, parseChatTemplate } from '../../packages/core/src/template/jinja.ts'
import { toDateVariables } from '../../packages/core/src/template/standard-variables.ts'
import { differences, writesBooleans } from './differences.ts'
import {
  bosToken,
  eosToken,
  type RecordedRequest,
  readTemplates,
  recordedAt,
  requests,
  withSources,
} from './release.mjs'

/** For each template, the prompt of each conversation, or the error of llama.cpp. */
type Recording = Readonly<Record<string, readonly { readonly prompt?: string; readonly error?: string }[]>>

const recording = JSON.parse(
  brotliDecompressSync(readFileSync(new URL('./prompts.json.br', import.meta.url))).toString(),
) as Recording
const templates = withSources(['models/templates'], readTemplates)

beforeAll(() => void vi.useFakeTimers({ now: recordedAt, toFake: ['Date'] }))
afterAll(() => void vi.useRealTimers())

/** The process that renders templates which the JavaScript renderer does not support. */
const native = new BoundedWorker<NativeJob, NativeResult>(
  new URL('../../packages/core/dist/engine/local/model-process/native-process.js', import.meta.url),
  { memoryMb: 1_024, limitError: invalidRequest, crashError: () => invalidRequest('crash') },
  startProcess,
)

interface Prompts {
  /** Absent if the JavaScript renderer lacks a feature, or if the template rejects the messages. */
  readonly inJavaScript: string | undefined
  readonly inNativeCode: string | undefined
}

async function renderAll(source: string): Promise<readonly Prompts[]> {
  const template = { source, bosToken, eosToken }
  const renderer = undefinedIfThrown(() => parseChatTemplate(template))
  const toInput = createTemplateInputBuilder(template)
  return Promise.all(
    requests.map(async (request) => {
      const messages = toMessages(request.messages)
      const options = { reasoning: request.reasoning, tools: request.tools?.map((tool) => tool.function) }
      const input = toInput(messages, options)
      const text = await renderInNativeCode({ source, variables: input.variables })
      return {
        inJavaScript: undefinedIfThrown(() => renderer?.(messages, options)),
        inNativeCode: text === undefined ? undefined : toPrompt(text, input),
      }
    }),
  )
}

async function renderInNativeCode(job: NativeJob): Promise<string | undefined> {
  const result = await native.run(job, new AbortController().signal, new CpuMeter(10_000))
  return result?.text && withRecordedDate(result.text)
}

/** Replaces the date that native code inserts. */
function withRecordedDate(text: string): string {
  const formats = (date: Date): readonly string[] => [
    date.toISOString().slice(0, 10),
    date.toLocaleString('en', { dateStyle: 'long' }).replace(/ (\d),/, ' 0$1,'),
    ...Object.values(toDateVariables(date)),
  ]
  vi.useRealTimers()
  const today = formats(new Date())
  vi.useFakeTimers({ now: recordedAt, toFake: ['Date'] })
  return today.reduce((all, date, index) => all.replaceAll(date, formats(recordedAt)[index] as string), text)
}

function undefinedIfThrown<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch {
    return undefined
  }
}

test.each([...templates])(
  '%s writes the prompts of llama.cpp, apart from the listed differences',
  async (name, source) => {
    const prompts = await renderAll(source)

    const outdated: object[] = []
    for (const [index, request] of requests.entries()) {
      const { inJavaScript, inNativeCode } = prompts[index] as Prompts
      const prompt = inJavaScript ?? inNativeCode
      if (inJavaScript !== undefined && inNativeCode !== undefined && !writesBooleans(name, request))
        expect.soft(inNativeCode, `${request.name}, in native code`).toBe(inJavaScript)
      const recorded = recording[name]?.[index]?.prompt
      const reasons = listReasons(name, request)
      if (reasons.length === 0) expect.soft(prompt, request.name).toBe(recorded)
      else if (prompt === recorded) outdated.push({ conversation: request.name, reasons })
    }
    expect(outdated, 'listed as different, but equal').toEqual([])
  },
)

const listReasons = (name: string, request: RecordedRequest): readonly string[] =>
  differences
    .filter(({ templates, differs }) => templates.some((start) => name.startsWith(start)) && differs(request))
    .map(({ why }) => why)
