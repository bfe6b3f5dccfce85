/** From the Anthropic API to the neutral language. */
import type { GenerateRequest, Message } from '../../engine/request.ts'
import type * as schema from './schema.ts'

export function toGenerateRequest(body: schema.MessagesRequest): GenerateRequest {
  const { temperature = 1, top_p: topP = 1, top_k: topK, stop_sequences: stop = [] } = body
  return {
    ...toPrompt(body),
    maxTokens: body.max_tokens,
    ...(stop.length > 0 && { stop }),
    sampling: { temperature, topP, ...(topK && { topK }) },
  }
}

/** What the model reads: all that counts as input. */
export function toPrompt({
  model,
  system,
  messages,
}: schema.CountTokensRequest): Pick<GenerateRequest, 'model' | 'input'> {
  const turns = merged([
    { role: 'system', text: textOf(blocksOf(system).filter((block) => !isBilling(block))) },
    ...messages.map(({ role, content }) => ({ role, text: textOf(blocksOf(content)) })),
  ])
  return { model, input: { kind: 'chat', messages: turns } }
}

interface Turn {
  readonly role: Message['role']
  readonly text: string
}

/** Turns of one role in a row are one turn, with a blank line between them; one that says nothing is none. */
function merged(turns: readonly Turn[]): readonly Message[] {
  const runs: { readonly role: Message['role']; readonly texts: string[] }[] = []
  for (const { role, text } of turns) {
    const last = runs.at(-1)
    if (text === '' && role !== 'user') continue
    if (last?.role === role) last.texts.push(text)
    else runs.push({ role, texts: [text] })
  }
  return runs.map(({ role, texts }) => ({
    role,
    content: [{ type: 'text', text: texts.filter((text) => text !== '').join('\n\n') }],
  }))
}

const blocksOf = (content: schema.Content | undefined): readonly schema.TextBlock[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? [])

/** As they are: clients split a text where they want it cached. */
const textOf = (blocks: readonly schema.TextBlock[]): string => blocks.map(({ text }) => text).join('')

/** Claude Code's mark for its own billing. It is no prompt, and changes with each call. */
const isBilling = ({ text }: schema.TextBlock): boolean => text.startsWith('x-anthropic-billing-header:')
