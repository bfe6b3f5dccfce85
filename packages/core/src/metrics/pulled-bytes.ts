/** Counts the bytes of pulls, from the progress of their blobs. */
import type { TransferProgress } from '../diagnostics/events.ts'

export class PulledBytes {
  readonly #add: (bytes: number) => void
  /** Completed bytes of the blobs of running pulls, by model and digest. */
  readonly #completed = new Map<string, Map<string, number>>()

  constructor(add: (bytes: number) => void) {
    this.#add = add
  }

  onProgress({ kind, model, digest, completedBytes, isLast }: TransferProgress): void {
    if (kind !== 'pull') return
    if (isLast) return void this.#completed.delete(model)
    if (digest === undefined || completedBytes === undefined) return
    const blobs = this.#completed.get(model) ?? new Map<string, number>()
    this.#completed.set(model, blobs)
    // A pull that resumes begins with what an earlier one has downloaded.
    const before = blobs.get(digest) ?? completedBytes
    blobs.set(digest, Math.max(before, completedBytes))
    if (completedBytes > before) this.#add(completedBytes - before)
  }
}
