/** Items as they are stored and listed. Shape: OpenAI API reference, "List input items" and "List items". */
import { isRecord } from '../../../util/is-record.ts'
import { withType } from './items.ts'

/** An item, or a reference to one. */
export type ItemObject = Readonly<Record<string, unknown>> & { readonly id: string; readonly type: string }

export const isReference = ({ type }: ItemObject): boolean => type === 'item_reference'

/**
 * Converts the validated input of a request to items with ids.
 *
 * @param createId returns the id of an item that has none
 */
export function toItemObjects(
  input: unknown,
  createId: (type: string, index: number) => string,
): readonly ItemObject[] {
  const items: readonly unknown[] =
    typeof input === 'string' ? [{ role: 'user', content: input }] : Array.isArray(input) ? input : []
  return items.map((given, index) => {
    const item = withType(given) as Readonly<Record<string, unknown>> & { readonly type: string }
    const id = typeof item.id === 'string' && item.id !== '' ? item.id : createId(item.type, index)
    if (item.type === 'item_reference') return { type: item.type, id }
    return { ...item, id, status: item.status ?? 'completed', ...toContent(item) }
  })
}

/** Replaces the text of a message by the part that it abbreviates. */
function toContent({ type, role, content }: Readonly<Record<string, unknown>>): object {
  if (type !== 'message' || typeof content !== 'string') return {}
  return role === 'assistant'
    ? { content: [{ type: 'output_text', text: content, annotations: [], logprobs: [] }] }
    : { content: [{ type: 'input_text', text: content }] }
}

/** Whether a later request can continue an item: the arguments of an incomplete tool call are no JSON. */
export const isContinuable = ({ type, status }: ItemObject): boolean =>
  status !== 'incomplete' || !/_call$/.test(type)

/** Parses a list of items that this server has stored. */
export const parseItems = (json: string): readonly ItemObject[] => JSON.parse(json) as readonly ItemObject[]

/** The output items of a stored response. */
export function outputOf(response: unknown): readonly ItemObject[] {
  return isRecord(response) && Array.isArray(response.output) ? (response.output as ItemObject[]) : []
}
