/** Output constraint: what a grammar enforces on the text of one model family. */
export interface OutputConstraint {
  readonly reasoningBlock?: {
    readonly open: string
    readonly close: string
    /** The prompt already contains `open`; otherwise reasoning is optional. */
    readonly isOpen: boolean
  }
  /** Written before content. */
  readonly contentPrefix?: string
  /** Absent: content is any text. */
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

/** Markup of tool calls. White space in these strings is optional, except between two words. */
export interface ToolCallFormat {
  /** Text that starts calls and nothing else. Absent: only the rest of a call distinguishes it from text. */
  readonly mark?: string
  /** Written before the mark if the output starts with a call. */
  readonly prefix?: string
  /** Written between the mark and the first call. */
  readonly open?: string
  /** Text before the name, between name and arguments (with alternatives), and after them. The name is JSON if `before` ends with a quote. */
  readonly call: readonly [before: string, between: string | readonly string[], after: string]
  /** Absent: an output has one call. */
  readonly separator?: string
  readonly close?: string
}

export interface CallableTool {
  readonly name: string
  /** JSON Schema of an object. */
  readonly parameters?: unknown
  /** Whether to reject unsupported parameter schemas instead of accepting any object. */
  readonly strict?: boolean
  /** Request field of the parameters, for errors. @default 'parameters' */
  readonly field?: string
}
