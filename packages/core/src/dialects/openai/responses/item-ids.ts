/** Ids of items. Each contains the id of the response or conversation to which the item belongs. */
import { nanoid } from 'nanoid'

const prefixes: Readonly<Record<string, string>> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  function_call_output: 'fco',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctco',
}

/** @param generationId the id of the response without its prefix */
export const toOutputItemId = (type: string, generationId: string, index: number): string =>
  `${prefixes[type]}_${generationId}_${index}`

export const toInputItemId = (type: string, generationId: string, index: number): string =>
  `${prefixes[type]}_${generationId}_i${index}`

/** Id of an item that a client adds to a conversation. */
export const createItemId = (type: string, conversationId: string): string =>
  `${prefixes[type]}_${conversationId.replace(/^conv_/, '')}_${nanoid(10)}`

export const createConversationId = (): string => `conv_${nanoid()}`

/** Returns the response and the conversation to which an item may belong, unless the id is not from this server. */
export function ownersOf(
  itemId: string,
): { readonly response: string; readonly conversation: string } | undefined {
  const [, owner] = /^[a-z]+_([\w-]{21})_i?[\w-]{1,10}$/.exec(itemId) ?? []
  return owner === undefined ? undefined : { response: `resp_${owner}`, conversation: `conv_${owner}` }
}

/** Whether a client's text can be the id of something that is stored. */
export const isStorableId = (prefix: 'resp' | 'conv', id: string): boolean =>
  id.startsWith(`${prefix}_`) && /^[\w-]{1,64}$/.test(id)
