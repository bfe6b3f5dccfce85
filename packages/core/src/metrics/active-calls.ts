/** The calls that are with the engine, by model. */
export class ActiveCalls {
  /** Labels of models, by the id of the call. */
  readonly #models = new Map<string, string>()

  add(id: string, model: string): void {
    this.#models.set(id, model)
  }

  delete(id: string): void {
    this.#models.delete(id)
  }

  counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const model of this.#models.values()) counts.set(model, (counts.get(model) ?? 0) + 1)
    return counts
  }
}
