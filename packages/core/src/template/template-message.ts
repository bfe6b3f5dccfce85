/** Messages as templates receive them, in the shape of OpenAI's Chat Completions API. */
export interface TemplateMessage {
  readonly role: string
  readonly content: string
  readonly reasoning_content?: string
  /** Same text as `reasoning_content`, for the template of gpt-oss. */
  readonly thinking?: string
  /** For the older template of Gemma 4, which has results in the message with the calls. */
  readonly tool_responses?: readonly ToolResponse[]
  readonly tool_calls?: readonly TemplateCall[]
  readonly tool_call_id?: string
  readonly name?: string
}

export interface TemplateCall {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; readonly arguments: unknown }
}

export interface ToolResponse {
  readonly name: string
  /** Text, or a value parsed from JSON. */
  readonly response: unknown
}
