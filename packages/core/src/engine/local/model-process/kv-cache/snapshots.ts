/**
 * KV states in files, within one size limit: snapshots, which later prompts reuse, and the states of suspended
 * sequences, which precede them.
 */
import type { Token } from 'node-llama-cpp'
import { type EvictedStates, PrefixIndex, type PromptPrefix } from './prefix-index.ts'
import type { SequenceState } from './sequence-state.ts'
import { hasSamePieces, type SlotRequest, volatileTailTokens } from './slots.ts'
import { type StateFile, StateFiles, type StateFilesOptions } from './state-files.ts'

export interface Snapshot extends SequenceState, PromptPrefix, StateFile {
  readonly tokens: readonly Token[]
}

export interface SnapshotStoreOptions extends StateFilesOptions {
  /**
   * Size of the state of a sequence of this many tokens, in bytes, or a lower bound of it. @default 0, which
   * means unknown
   */
  readonly sizeOf?: ((length: number) => number) | undefined
}

/**
 * Length in tokens of the part of a prompt that is saved as a snapshot, or 0 for none. This part consists of
 * whole chunks, so that the rest is evaluated in the same chunks as without a snapshot. It ends before the
 * end of the prompt, so that both the same prompt and the next turn can use the snapshot.
 */
export const snapshotLength = (promptLength: number, chunkSize: number): number =>
  Math.max(0, Math.floor((promptLength - volatileTailTokens) / chunkSize) * chunkSize)

export class SnapshotStore {
  readonly #files: StateFiles
  readonly #budgetBytes: number
  readonly #sizeOf: (length: number) => number
  readonly #prefixes: PrefixIndex<Snapshot>
  /** Files of suspended sequences. */
  readonly #suspended = new Set<string>()
  /** Length in tokens of the shortest state that exceeded the budget, in spite of its lower bound. */
  #oversizedLength = Number.POSITIVE_INFINITY

  /**
   * @param folder private folder for the files, empty or not created yet
   * @param budgetBytes limit on the total size of all states, also while one is written
   */
  constructor(folder: string, budgetBytes: number, options: SnapshotStoreOptions = {}) {
    this.#files = new StateFiles(folder, options)
    this.#budgetBytes = Math.floor(budgetBytes)
    this.#sizeOf = options.sizeOf ?? (() => 0)
    this.#prefixes = new PrefixIndex(
      this.#budgetBytes,
      (snapshot) => this.#files.remove(snapshot),
      options.now,
    )
  }

  /** Number of the snapshots, without suspended states. */
  get count(): number {
    return this.#prefixes.count
  }

  /** Snapshots that were dropped since the start. */
  get evicted(): EvictedStates {
    return this.#prefixes.evicted
  }

  /** Total size of the snapshots, without suspended states. */
  get sizeBytes(): number {
    return this.#prefixes.sizeBytes
  }

  /** Whether a state of this many tokens may be saved, as far as is known before it is written. */
  canSave(length: number): boolean {
    return (
      this.#budgetBytes > 0 &&
      this.#sizeOf(length) <= this.#budgetBytes &&
      length < this.#oversizedLength &&
      !this.#files.isPaused
    )
  }

  /** Finds the longest snapshot that the prompt can continue. At least one prompt token comes after it. */
  findLongest(request: SlotRequest): Snapshot | undefined {
    const { prompt, tenant, isDeterministic: mustBeDeterministic, maxReuse = prompt.length - 1 } = request
    return this.#prefixes
      .findPrefixes(tenant, prompt)
      .find(
        ({ tokens: { length }, isDeterministic, pieceEnds }) =>
          length <= maxReuse &&
          (!mustBeDeterministic || (isDeterministic && hasSamePieces(pieceEnds, request.pieceEnds, length))),
      )
  }

  /** Restarts the lifetime of a snapshot in use. */
  touch(snapshot: Snapshot): void {
    this.#prefixes.renew(snapshot)
  }

  /** Length of the longest prefix of at most `limit` tokens that is cached for a breakpoint. */
  cachedPrefixLength(tenant: string, prompt: readonly Token[], limit: number): number {
    const lease = this.#prefixes
      .findPrefixes(tenant, prompt)
      .find(({ tokens, lifetime }) => lifetime && tokens.length <= limit)
    return lease?.tokens.length ?? 0
  }

  /** Whether exactly these tokens are cached for a breakpoint. */
  hasPrefix(tenant: string, tokens: readonly Token[]): boolean {
    return this.#prefixes.get(tenant, tokens)?.lifetime !== undefined
  }

  /**
   * Restarts the lifetimes of all prefixes of at most `limit` tokens that are cached for a breakpoint.
   * @param hourLength prefixes of at most this many tokens get a lifetime of an hour
   */
  renew(tenant: string, prompt: readonly Token[], limit: number, hourLength = 0): void {
    for (const lease of this.#prefixes.findPrefixes(tenant, prompt)) {
      const { length } = lease.tokens
      if (lease.lifetime && length <= limit)
        this.#prefixes.renew(lease, length <= hourLength ? '1h' : undefined)
    }
  }

  /**
   * Saves a state. Never throws, since a state that cannot be saved can be evaluated again.
   * @param write saves the state to the file and returns its size in bytes
   * @returns whether the state is cached
   */
  async save(state: SequenceState, write: (file: string) => Promise<number>): Promise<boolean> {
    const { tenant, tokens } = state
    const existing = this.#prefixes.get(tenant, tokens)
    if (existing && isAsGoodAs(existing, state)) {
      this.#prefixes.renew(existing, state.lifetime)
      return true
    }
    const lifetime = existing?.lifetime === '1h' ? '1h' : (state.lifetime ?? existing?.lifetime)
    const written = await this.#write(tokens.length, lifetime !== undefined, write)
    if (!written) return false
    if (this.#prefixes.add({ ...state, lifetime, ...written })) return true
    this.#files.remove(written)
    return false
  }

  /**
   * Loads a snapshot. Returns `false` if the file has changed or cannot be loaded. In this case, the snapshot
   * is dropped, and the state of the sequence is unknown.
   * @param restore loads the state from the file and returns its number of tokens
   */
  async load(snapshot: Snapshot, restore: (file: string) => Promise<number>): Promise<boolean> {
    const isLoaded = await this.#files.load(snapshot, snapshot.tokens.length, restore)
    if (isLoaded) this.#prefixes.renew(snapshot)
    else this.#prefixes.delete(snapshot)
    return isLoaded
  }

  /**
   * Saves the state of a sequence that gives up its slot. Evicts snapshots if there is no room. Returns
   * `undefined` if the state cannot be saved.
   * @param length number of tokens of the state
   */
  async suspend(length: number, write: (file: string) => Promise<number>): Promise<StateFile | undefined> {
    const written = await this.#write(length, true, write)
    if (!written) return undefined
    if (!this.#prefixes.reserve(written.sizeBytes)) {
      this.#files.remove(written)
      return undefined
    }
    this.#suspended.add(written.file)
    return written
  }

  /** Loads the state of a suspended sequence, and removes the file afterwards. Returns `false` like `load`. */
  async resume(
    state: StateFile,
    length: number,
    restore: (file: string) => Promise<number>,
  ): Promise<boolean> {
    const isLoaded = await this.#files.load(state, length, restore)
    // Removing a large file takes half as long as loading it. No step has to wait for that.
    setImmediate(() => this.discard(state))
    return isLoaded
  }

  /** Removes the state of a suspended sequence. Does nothing if it is removed already. */
  discard(state: StateFile): void {
    if (!this.#suspended.delete(state.file)) return
    this.#prefixes.release(state.sizeBytes)
    this.#files.remove(state)
  }

  /** Deletes the snapshots of a tenant, and returns their number. States of suspended sequences stay. */
  deleteTenant(tenant: string): number {
    return this.#prefixes.deleteTenant(tenant)
  }

  /** Removes all files. */
  close(): void {
    this.#prefixes.clear()
    this.#files.removeAll()
  }

  /**
   * Writes a state, after it has made room for it. Never rejects. Returns `undefined` if there is no room or the
   * disk is full.
   * @param canEvictBreakpoints whether snapshots at breakpoints may be evicted
   */
  async #write(
    length: number,
    canEvictBreakpoints: boolean,
    write: (file: string) => Promise<number>,
  ): Promise<StateFile | undefined> {
    const expectedBytes = this.#sizeOf(length)
    if (!this.canSave(length) || !this.#prefixes.reserve(expectedBytes, canEvictBreakpoints)) return undefined
    const written = await this.#files.write(expectedBytes, write)
    this.#prefixes.release(expectedBytes)
    if (!written || written.sizeBytes <= this.#budgetBytes) return written
    this.#oversizedLength = length
    this.#files.remove(written)
    return undefined
  }
}

const isAsGoodAs = (one: SequenceState, other: SequenceState): boolean =>
  (one.lifetime !== undefined || other.lifetime === undefined) &&
  (!other.isDeterministic || (one.isDeterministic && `${one.pieceEnds}` === `${other.pieceEnds}`))
