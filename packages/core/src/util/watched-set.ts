/** A set that reports when it becomes empty. */
export class WatchedSet<Item> extends Set<Item> {
  #waiting: (() => void)[] = []

  override delete(item: Item): boolean {
    const wasIn = super.delete(item)
    if (this.size === 0) for (const resolve of this.#waiting.splice(0)) resolve()
    return wasIn
  }

  /** Resolves when the set is empty, at once if it is empty now. */
  whenEmpty(): Promise<void> {
    if (this.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
    })
  }
}
