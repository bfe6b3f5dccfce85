/** Tokenizer routes of vLLM and llama-server, which OpenAI's API does not have. */
import { isRecord } from '../../../util/is-record.ts'
import type { EngineCall } from '../../engine.ts'
import type { GenerateRequest } from '../../request.ts'
import { isRaw } from '../../request-input.ts'
import type { DetokenizeRequest, TokenizeRequest } from '../../tokens.ts'
import type { UpstreamClient } from '../upstream-client.ts'
import { invalidResponse, unsupportedByUpstream } from '../upstream-errors.ts'
import { toCount } from './answer-chunks.ts'
import { toChat, toPromptFields } from './chat-request.ts'
import type { ServerFeatures } from './server-kind.ts'

/** llama-server has it, too. */
const countPath = '/v1/chat/completions/input_tokens'

type TokenizerCall = Pick<EngineCall, 'signal'>

export class OpenAiTokenizer {
  readonly #client: UpstreamClient
  readonly #features: ServerFeatures
  readonly #kind: ServerFeatures['tokenizer']

  /** @param features of a server with a tokenizer */
  constructor(client: UpstreamClient, features: ServerFeatures) {
    this.#client = client
    this.#features = features
    this.#kind = features.tokenizer
  }

  /** Resolves to undefined for a prompt that the server cannot count. */
  async count(request: GenerateRequest, { signal }: TokenizerCall): Promise<number | undefined> {
    const { model, input } = request
    if (this.#kind === 'count') {
      if (isRaw(input)) return undefined
      const body = await this.#post(countPath, { model, ...this.#toPrompt(request) }, model, signal)
      return isRecord(body) ? toCount(body.input_tokens) : undefined
    }
    if (isRaw(input) || this.#kind === 'template') {
      const text = isRaw(input) ? rawTextOf(input) : await this.render(request, { signal })
      return (await this.tokenize({ model, text, addSpecial: true }, { signal })).length
    }
    const body = await this.#post('/tokenize', { model, ...this.#toPrompt(request) }, model, signal)
    return isRecord(body) && typeof body.count === 'number' ? body.count : idsIn(body).length
  }

  async render(request: GenerateRequest, { signal }: TokenizerCall): Promise<string> {
    if (this.#kind !== 'template') throw unsupportedByUpstream('rendering of prompts', 'model')
    const { model, input } = request
    if (isRaw(input)) return rawTextOf(input)
    const body = await this.#post('/apply-template', this.#toPrompt(request), model, signal)
    if (!isRecord(body) || typeof body.prompt !== 'string') throw invalidResponse('it has no prompt')
    return body.prompt
  }

  async tokenize(
    { model, text, addSpecial = false, parseSpecial = true }: TokenizeRequest,
    { signal }: TokenizerCall,
  ): Promise<readonly number[]> {
    this.#expectTokenizer()
    const json =
      this.#kind === 'messages'
        ? { model, prompt: text, add_special_tokens: addSpecial }
        : { content: text, add_special: addSpecial, parse_special: parseSpecial }
    return idsIn(await this.#post('/tokenize', json, model, signal))
  }

  async detokenize({ model, tokens }: DetokenizeRequest, { signal }: TokenizerCall): Promise<string> {
    this.#expectTokenizer()
    const json = this.#kind === 'messages' ? { model, tokens } : { tokens }
    const body = await this.#post('/detokenize', json, model, signal)
    const text = isRecord(body) ? (body.prompt ?? body.content) : undefined
    if (typeof text !== 'string') throw invalidResponse('it has no text')
    return text
  }

  /** The same fields as in a call, so that its prompt is counted. */
  #toPrompt(request: GenerateRequest): object {
    const { input } = request
    if (input.kind === 'infill') throw unsupportedByUpstream('fill-in-the-middle', 'suffix')
    return toPromptFields(request, toChat(input), this.#features)
  }

  #expectTokenizer(): void {
    if (this.#kind === 'count') throw unsupportedByUpstream('a tokenizer', 'model')
  }

  #post(path: string, json: object, model: string, signal: AbortSignal): Promise<unknown> {
    return this.#client.readJson({ path, json, model, signal })
  }
}

function rawTextOf(input: GenerateRequest['input']): string {
  if (input.kind === 'infill') return input.prefix + input.suffix
  if (input.kind === 'chat') return ''
  return input.prompt.filter((piece) => typeof piece === 'string').join('')
}

function idsIn(body: unknown): readonly number[] {
  const tokens = isRecord(body) ? body.tokens : undefined
  if (!Array.isArray(tokens) || !tokens.every((one) => typeof one === 'number'))
    throw invalidResponse('it has no list of tokens')
  return tokens
}
