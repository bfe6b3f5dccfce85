/** An engine that says what it was told to: for tests of an app, without a model. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Engine, EngineCall } from '../engine/engine.ts'
import type { GenerateEvent } from '../engine/events.ts'
import type { GenerateRequest } from '../engine/request.ts'
import type { LlmError } from '../errors.ts'

/** What is said, or a function of the request that says it. A list is said piece by piece; an error ends the answer. */
export type Script = Say | ((request: GenerateRequest) => Say)
export type Say = string | LlmError | readonly (string | LlmError)[]

export interface ScriptedEngineOptions {
  /** Waits so long before each piece, in milliseconds. @default 0 */
  readonly delayMs?: number
}

export interface ScriptedEngine extends Engine {
  /** What was asked, in order. */
  readonly requests: readonly GenerateRequest[]
  /** How many answers are being made right now. */
  readonly running: number
}

/** A text is said word by word; each piece counts as one token, the prompt as one a message. */
export function scriptedEngine(script: Script, { delayMs = 0 }: ScriptedEngineOptions = {}): ScriptedEngine {
  const requests: GenerateRequest[] = []
  let running = 0

  async function* generate(request: GenerateRequest, { signal }: EngineCall): AsyncGenerator<GenerateEvent> {
    requests.push(request)
    running++
    try {
      const said = typeof script === 'function' ? script(request) : script
      const pieces = typeof said === 'string' ? words(said) : Array.isArray(said) ? said : [said]
      const limit = request.maxTokens ?? pieces.length
      const startedAt = performance.now()
      const inputTokens = request.input.messages.length
      if (typeof pieces[0] === 'object') throw pieces[0]
      yield { type: 'start', model: request.model, inputTokens, reusedTokens: 0, fingerprint: 'fp_scripted' }

      for (const piece of pieces.slice(0, limit)) {
        if (delayMs > 0) await delay(delayMs, undefined, { signal }).catch(() => {})
        if (signal.aborted) return
        if (typeof piece === 'object') throw piece
        yield { type: 'text', text: piece, tokens: 1 }
      }

      yield {
        type: 'end',
        reason: limit < pieces.length ? 'length' : 'stop',
        usage: { inputTokens, reusedTokens: 0, outputTokens: Math.min(limit, pieces.length) },
        timings: { loadMs: 0, promptMs: 0, generateMs: performance.now() - startedAt },
      }
    } finally {
      running--
    }
  }

  return {
    generate,
    requests,
    get running() {
      return running
    },
    loaded: () => [],
    close: async () => {},
  }
}

/** With the spaces in front: joined, they are the text again. */
const words = (text: string): readonly string[] => text.match(/\s*\S+|\s+$/g) ?? []
