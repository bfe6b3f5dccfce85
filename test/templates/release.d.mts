import type { toMessages } from '../../packages/core/src/dialects/openai/messages.ts'
import type { Tool } from '../../packages/core/src/engine/request.ts'

export interface RecordedRequest {
  readonly name: string
  readonly messages: Parameters<typeof toMessages>[0]
  readonly tools?: readonly { readonly type: 'function'; readonly function: Tool }[]
  /** Whether reasoning is turned on or off. If absent, the template decides. */
  readonly reasoning?: boolean
  /** Whether the model continues the last message. */
  readonly isContinued?: true
}

export declare const recordedAt: Date
export declare const bosToken: string
export declare const eosToken: string
export declare const library: string
export declare const requests: readonly RecordedRequest[]
export declare function checkOut(directory: string, folders: readonly string[]): void
export declare function withSources<T>(folders: readonly string[], use: (directory: string) => T): T
export declare function readTemplates(sources: string): ReadonlyMap<string, string>
