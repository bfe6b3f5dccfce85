/**
 * First in, first out. `Array.shift` moves all other items of a long array. This list moves each item at most
 * once.
 */
export class Fifo<Item> {
  #items: (Item | undefined)[] = []
  #head = 0
  #tail = 0

  get size(): number {
    return this.#tail - this.#head
  }

  push(item: Item): void {
    this.#items[this.#tail++] = item
  }

  shift(): Item | undefined {
    if (this.#head === this.#tail) return undefined
    const item = this.#items[this.#head]
    this.#items[this.#head++] = undefined
    if (this.#head === this.#tail) this.#reset()
    else if (this.#head > keptSlots && this.#head * 2 > this.#tail) this.#compact()
    return item
  }

  clear(): void {
    this.#items = []
    this.#head = this.#tail = 0
  }

  /** Keeps a short array, since a list that is often empty would allocate one each time. */
  #reset(): void {
    if (this.#items.length > keptSlots) this.#items = []
    this.#head = this.#tail = 0
  }

  #compact(): void {
    this.#items = this.#items.slice(this.#head, this.#tail)
    this.#tail -= this.#head
    this.#head = 0
  }
}

const keptSlots = 64
