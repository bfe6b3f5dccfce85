/** Remembers which calls have counted the tokens of prompts, so that `generate` need not count them again. */
import type { GenerateRequest } from '../request.ts'
import type { ProcessClient } from './supervisor/process-client.ts'

type CountableRequest = Pick<GenerateRequest, 'input' | 'reasoning'>

interface Count {
  readonly process: ProcessClient
  /** Id of the call that counted. */
  readonly callId: number
  readonly reasoning: GenerateRequest['reasoning']
}

/** Finds a prompt by its input object, because comparing or hashing long texts would block the host app. */
export class CountedInputs {
  readonly #counts = new WeakMap<GenerateRequest['input'], Count>()

  add({ input, reasoning }: CountableRequest, process: ProcessClient, callId: number): void {
    this.#counts.set(input, { process, callId, reasoning })
  }

  /**
   * Returns the id of the call that counted the same prompt in this process. Forgets that call, since its
   * tokens can be used only once.
   */
  take({ input, reasoning }: CountableRequest, process: ProcessClient): number | undefined {
    const count = this.#counts.get(input)
    this.#counts.delete(input)
    return count?.process === process && count.reasoning === reasoning ? count.callId : undefined
  }
}
