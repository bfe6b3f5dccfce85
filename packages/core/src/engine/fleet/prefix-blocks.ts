/** Cuts the beginning of a prompt into blocks whose hashes tell which prompts begin alike. */
import { createHash } from 'node:crypto'
import type { GenerateRequest, Message, Part } from '../request.ts'
import { estimatePromptTokens } from '../request-input.ts'

/** Up to where a prompt is the same as others. */
export interface PrefixBlock {
  /** Hash of the prompt from its beginning to the end of the block, of its tenant and of its model. */
  readonly hash: string
  /** Tokens up to the end of the block, as an estimate. */
  readonly tokens: number
}

export interface HashedPrompt {
  /** In the order of the prompt. Each message ends a block. */
  readonly blocks: readonly PrefixBlock[]
  /** The same for all turns of a conversation, so that all app processes choose the same replica for it. */
  readonly key: string
  /** Tokens of the whole prompt, as an estimate. */
  readonly tokens: number
}

/** Characters of a block, about 500 tokens of English. */
const blockLength = 2_048
/** The rest of a longer prompt is one block. */
const maxBlocks = 1_024

interface Segment {
  readonly text: string
  /** Whether other conversations begin alike: tools and instructions. */
  readonly isCommon: boolean
}

/** @param tenant its prompts share no block with those of another tenant */
export function hashPrompt(
  request: Pick<GenerateRequest, 'model' | 'input'>,
  tenant: string | undefined,
): HashedPrompt {
  const segments = toSegments(request.input)
  const promptTokens = estimatePromptTokens(request)
  const length = segments.reduce((sum, { text }) => sum + text.length, 0)
  const hash = createHash('sha256').update(JSON.stringify([tenant ?? null, request.model]))
  const blocks: PrefixBlock[] = []
  let position = 0
  let key: string | undefined
  for (const { text, isCommon } of segments) {
    for (let start = 0; start < text.length; ) {
      const end = blocks.length < maxBlocks ? start + blockLength : text.length
      const block = text.slice(start, end)
      hash.update(block)
      position += block.length
      blocks.push({
        hash: hash.copy().digest('base64url').slice(0, 22),
        tokens: Math.round((promptTokens * position) / length),
      })
      start = end
      // The first block of a text stays the same while the text grows.
      if (!isCommon && request.input.kind !== 'chat') key ??= blocks.at(-1)?.hash
    }
    if (!isCommon) key ??= blocks.at(-1)?.hash
  }
  return { blocks, key: key ?? blocks.at(-1)?.hash ?? '', tokens: promptTokens }
}

function toSegments(input: GenerateRequest['input']): readonly Segment[] {
  if (input.kind === 'infill') return [input.prefix, input.suffix].map((text) => ({ text, isCommon: false }))
  const segments: Segment[] = []
  if (input.kind === 'chat' && input.tools?.length)
    segments.push({ text: JSON.stringify(input.tools, withoutCache), isCommon: true })
  if (input.kind === 'text' && input.system) segments.push({ text: input.system, isCommon: true })
  let isCommon = true
  for (const message of input.messages ?? []) {
    isCommon &&= message.role === 'system' || message.role === 'developer'
    segments.push({ text: toText(message), isCommon })
  }
  if (input.kind === 'text')
    segments.push(
      ...input.prompt.map((piece) => ({
        text: typeof piece === 'string' ? piece : JSON.stringify(piece),
        isCommon: false,
      })),
    )
  return segments
}

const toText = ({ role, content }: Message): string =>
  `${JSON.stringify(role)}${content.map((part: Part) => JSON.stringify(part, withoutCache)).join('')}`

/** Breakpoints move from turn to turn, and the paths of images with them. */
const withoutCache = (name: string, value: unknown): unknown =>
  name === 'cache' || name === 'param' ? undefined : value
