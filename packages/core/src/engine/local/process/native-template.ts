/**
 * Templates that only native code can fill. There a bad one ends the process or hangs it, and with it the answers of
 * everybody: what was begun and did not come back is known by a file that it left, and is not begun again.
 */
import { rmSync, statSync, writeFileSync } from 'node:fs'
import { LlmError } from '../../../errors.ts'

/** So long it is left alone. It may have been the machine after all. */
const banMs = 10 * 60_000

export class NativeTemplate {
  readonly #fill: (variables: object) => string
  readonly #mark: string

  /** @param mark the path of the file, which another template must not have */
  constructor(fill: (variables: object) => string, mark: string) {
    this.#fill = fill
    this.#mark = mark
  }

  /** Throws what the template raises, and `upstream` where it has not come back before. */
  fill(variables: object): string {
    const age = Date.now() - (statSync(this.#mark, { throwIfNoEntry: false })?.mtimeMs ?? 0)
    if (age < banMs)
      throw new LlmError(
        'upstream',
        `The chat template of this model has crashed or hung the engine. It is tried again when the file changes, or in ${Math.ceil((banMs - age) / 60_000)} minutes.`,
      )
    writeFileSync(this.#mark, '', { mode: 0o600 })
    try {
      return this.#fill(variables)
    } finally {
      rmSync(this.#mark, { force: true })
    }
  }
}
