/** Output constraint that a grammar enforces, in the markup of one model family. */
export interface OutputConstraint {
  readonly reasoningBlock?: {
    readonly open: string
    readonly close: string
    /** Whether the prompt already contains `open`. If not, reasoning is optional. */
    readonly isOpen: boolean
  }
  /** Markup that the model writes before content. */
  readonly contentPrefix?: string
  /** If absent, content can be any text. */
  readonly format?:
    | { readonly type: 'json' }
    | { readonly type: 'json-schema'; readonly schema: object | boolean }
    | { readonly type: 'grammar'; readonly source: string }
    | { readonly type: 'regex'; readonly pattern: string }
    | { readonly type: 'choice'; readonly choices: readonly string[] }
  readonly calls?: {
    readonly tools: readonly CallableTool[]
    readonly format: ToolCallFormat
    readonly isRequired: boolean
    readonly isParallel: boolean
  }
}

/** Markup of tool calls. White space in these strings is optional, except between two words. */
export interface ToolCallFormat {
  /**
   * Text that starts tool calls and never occurs elsewhere. If absent, a call can start like ordinary text.
   */
  readonly mark?: string
  /** Text before the mark if the output starts with a call. */
  readonly prefix?: string
  /** Text between the mark and the first call. */
  readonly open?: string
  /**
   * Text before the name, text between name and arguments, and text after the arguments. `between` can list
   * alternatives. If `before` ends with a quote, the name is escaped as in JSON.
   */
  readonly call: readonly [before: string, between: string | readonly string[], after: string]
  /** Text between two calls. If absent, an output has at most one call. */
  readonly separator?: string
  readonly close?: string
  /** Tags of arguments that are not JSON. Each parameter has a tag. If absent, the arguments are JSON. */
  readonly parameters?: ParameterTags
  /**
   * The token before and after strings, if the arguments are literals instead of JSON: objects with bare names, and
   * strings without escapes.
   */
  readonly quote?: string
  /**
   * Whether calls have no mark and are the whole output. Without a required call, a text is a call if it starts with
   * the text before the name and the name of a tool.
   */
  readonly isWholeOutput?: true
}

/** Tags around the parameters of a call. Line breaks around values are optional. */
export interface ParameterTags {
  /** Text before the name. */
  readonly open: string
  /** Text between the name and a value: before text, and before JSON. */
  readonly keyEnds: readonly [beforeText: string, beforeJson: string]
  readonly valueEnd: string
}

export interface CallableTool {
  readonly name: string
  /** JSON Schema of an object. */
  readonly parameters?: unknown
  /** Whether to reject unsupported parameter schemas instead of accepting any object. */
  readonly strict?: boolean
  /** Request field of the parameters, for error messages. @default 'parameters' */
  readonly field?: string
}
