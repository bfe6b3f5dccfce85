/** Output constraint: what a grammar enforces on the text of one model family. */
export interface OutputConstraint {
  readonly reasoningBlock?: {
    readonly open: string
    readonly close: string
    /** It is in the prompt already; else the model may think or not. */
    readonly isOpen: boolean
  }
  /** In front of what is said to the user. */
  readonly contentPrefix?: string
  /** What is said; absent: any text. */
  readonly format?:
    | { readonly type: 'json' }
    | { readonly type: 'json-schema'; readonly schema: object | boolean }
    | { readonly type: 'grammar'; readonly source: string }
  readonly calls?: {
    readonly tools: readonly CallableTool[]
    readonly format: ToolCallFormat
    readonly isRequired: boolean
    readonly isParallel: boolean
  }
}

/** White space in these texts may be left out, but between two words. */
export interface ToolCallFormat {
  /** What calls begin with and nothing else does. Absent: they are told from text by how they go on. */
  readonly mark?: string
  /** In front of the mark, where the answer begins with a call. */
  readonly prefix?: string
  /** Behind the mark, in front of all calls. */
  readonly open?: string
  /** In front of a name, which is in JSON where that ends with a quote; between name and arguments, in one way or several; behind them. */
  readonly call: readonly [before: string, between: string | readonly string[], after: string]
  /** Between two calls. Absent: an answer has one. */
  readonly separator?: string
  readonly close?: string
}

export interface CallableTool {
  readonly name: string
  /** JSON Schema of an object. */
  readonly parameters?: unknown
  /** Parameters that no grammar can say are refused, too; else they are any object. */
  readonly strict?: boolean
  /** What errors say of where its parameters are. @default 'parameters' */
  readonly field?: string
}
