/** What a model is beside its weights, as a Modelfile says it. */

export interface Recipe {
  /** In Go's template language; it wins over the one in the weights. */
  readonly template?: string
  readonly system?: string
  /** By their names in the Ollama API: `{ temperature: 0, stop: ['</s>'] }`. As they were written, checked where they are used. */
  readonly parameters: Readonly<Record<string, unknown>>
  /** Turns that every conversation begins with. */
  readonly messages: readonly RecipeMessage[]
  readonly license: readonly string[]
}

export interface RecipeMessage {
  readonly role: string
  readonly content: string
}
