/** Bounds the values of the label `model`: clients choose the names in their requests. */

/** Models with a label of their own. More would make the metrics of an app too many. */
const maxModels = 100

/** The label of all models that were not found, and of those beyond the bound. */
export const unknownModel = 'unknown'

export class ModelLabels {
  readonly #known = new Set<string>()

  /** Labels of the models that exist. */
  known(): Iterable<string> {
    return this.#known
  }

  /** @param isKnown whether the model exists. A name that existed once stays known */
  of(name: string, isKnown: boolean): string {
    if (this.#known.has(name)) return name
    if (!isKnown || name === '' || this.#known.size >= maxModels) return unknownModel
    this.#known.add(name)
    return name
  }
}
