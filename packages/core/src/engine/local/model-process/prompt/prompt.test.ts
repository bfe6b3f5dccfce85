import type { Token } from 'node-llama-cpp'
import { expect, test } from 'vitest'
import { budgetOf } from '../../../../../../../test/support/budgets.ts'
import { contextLengthExceeded, invalidRequest } from '../../../../errors.ts'
import type { ChatTemplate } from '../../../../template/jinja.ts'
import type { GenerateRequest, Message } from '../../../request.ts'
import type { RuntimeModel } from '../model.ts'
import type { RunContext } from '../run-context.ts'
import { countAddedTokens, countTokens, renderPrompt, tokenizePrompt } from './prompt.ts'

const bos = 1
const vocabularySize = 200

interface Fake {
  readonly contextSize?: number
  readonly bos?: Token
  readonly start?: Token
  readonly tokenize?: RuntimeModel['tokenize']
  /** Rendered prompt. @default the texts of the messages, joined by spaces */
  readonly template?: (messages: readonly Message[]) => string
  readonly signal?: AbortSignal
}

/** A model whose tokens are words: `b` is the BOS token, a number is itself, everything else is 100. */
function fakeWork(fake: Fake = {}): RunContext & { readonly rendered: (readonly Message[])[] } {
  const rendered: (readonly Message[])[] = []
  const { signal = new AbortController().signal } = fake
  const model: Partial<RuntimeModel> = {
    contextSize: fake.contextSize ?? 100,
    vocabularySize,
    template: {} as ChatTemplate,
    bos: fake.bos,
    start: fake.start,
    tokenize:
      fake.tokenize ??
      (async (text) =>
        text
          .split(' ')
          .filter((word) => word !== '')
          .map((word) => (word === 'b' ? bos : Number(word) || 100) as Token)),
    detokenizeWithSpecial: (tokens) => `<${tokens.join(',')}>`,
  }
  const renderer: RunContext['renderer'] = {
    render: async ({ messages }) => {
      rendered.push(messages)
      return (fake.template ?? textOf)(messages)
    },
  }
  return {
    model: model as RuntimeModel,
    renderer,
    grammars: { build: async () => undefined },
    progress: { steps: 0 },
    tenant: '',
    weight: 1,
    background: false,
    signal,
    budget: budgetOf({ signal }),
    rendered,
  }
}

const textOf = (messages: readonly Message[]): string =>
  messages.flatMap(({ content }) => content.map((part) => ('text' in part ? part.text : ''))).join(' ')
const message = (role: string, text: string): Message => ({ role, content: [{ type: 'text', text }] })
const chat = (...messages: Message[]): GenerateRequest => ({
  model: 'm',
  input: { kind: 'chat', messages },
  overflow: 'truncate',
})
const text = (...prompt: (string | readonly number[])[]): GenerateRequest => ({
  model: 'm',
  input: { kind: 'text', prompt },
})
const raw = (...prompt: (string | readonly number[])[]): GenerateRequest => ({
  model: 'm',
  input: { kind: 'text', prompt, template: false },
})

test('a text without a template is tokenized in order, with its token ids', async () => {
  expect(await tokenizePrompt(raw('2 3', [4, 5], '6'), fakeWork())).toEqual([2, 3, 4, 5, 6])
  expect(await renderPrompt(raw('2 3', [4, 5], '6'), fakeWork())).toBe('2 3<4,5>6')
})

test('the text around a gap is plain text between the infill tokens of the model, after its BOS token', async () => {
  const input = { kind: 'infill', prefix: '2 3', suffix: '6' } as const
  const work = fakeWork({ bos: bos as Token })
  const plain: unknown[] = []
  const { tokenize } = work.model
  const infill = { prefix: 10, suffix: 11, middle: 12 } as unknown as RuntimeModel['infill']
  const model: RuntimeModel = {
    ...work.model,
    name: 'm:latest',
    infill,
    tokenize: (text, signal, how) => {
      plain.push(how)
      return tokenize(text, signal)
    },
  }

  expect(await tokenizePrompt({ model: 'm', input }, { ...work, model })).toEqual([bos, 10, 2, 3, 11, 6, 12])
  expect(await renderPrompt({ model: 'm', input }, { ...work, model })).toBe('<10>2 3<11>6<12>')
  expect(plain).toEqual([{ isPlain: true }, { isPlain: true }])
  expect(work.rendered).toEqual([])
  await expect(
    tokenizePrompt({ model: 'm', input }, { ...work, model: { ...model, infill: undefined } }),
  ).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('"m:latest"'),
    details: { param: 'suffix' },
  })
})

test('with a template, all text is one message, after the token ids', async () => {
  const template = (messages: readonly Message[]) => `9 ${textOf(messages)} 9`

  expect(await tokenizePrompt(text([4, 5], '6'), fakeWork({ template }))).toEqual([4, 5, 9, 6, 9])
  expect(await renderPrompt(text([4, 5], '6'), fakeWork({ template }))).toBe('<4,5>9 6 9')
})

test.each([[[200]], [[5, 1_000_000]]])('rejects the token ids %j and names the unknown id', async (ids) => {
  const asking = [tokenizePrompt, renderPrompt, countTokens].map((ask) => ask(text(ids, '6'), fakeWork()))

  for (const asked of asking)
    await expect(asked).rejects.toMatchObject({
      code: 'invalid_request',
      message: `The model has no token ${ids.at(-1)}: its vocabulary has 200 tokens.`,
    })
})

test.each([
  ['to a text without it', raw('2'), [1, 2]],
  ['not to a text with it', raw('b 2'), [1, 2]],
  ['not to token ids with it', raw([1, 2], '3'), [1, 2, 3]],
  ['not between token ids and a text with it', raw([1, 2], 'b 3'), [1, 2, 3]],
  ['to an empty prompt', raw(), [1]],
])('adds the BOS token only once: %s', async (_where, request, tokens) => {
  expect(await tokenizePrompt(request, fakeWork({ bos: bos as Token }))).toEqual(tokens)
})

test('a model that wants no BOS token gets none', async () => {
  expect(await tokenizePrompt(raw('2'), fakeWork())).toEqual([2])
})

test.each([
  ['added to the prompt', raw('2'), [1, 2], 1],
  ['written by a template', chat(message('user', '2')), [1, 2], 1],
  ['part of the text', raw('<s> 2'), [1, 2], 0],
  ['part of the token ids', raw([1, 2]), [1, 2], 0],
  ['absent', raw([2]), [2], 0],
])('counts added tokens if the BOS token is %s', (_how, request, tokens, added) => {
  const model = { bos: bos as Token, detokenizeWithSpecial: () => '<s>' }

  expect(countAddedTokens(request, tokens as Token[], model)).toBe(added)
  expect(countAddedTokens(request, tokens as Token[], { ...model, bos: undefined })).toBe(0)
})

test('a prompt has to leave room for one token', async () => {
  const fits = tokenizePrompt(raw('2 '.repeat(9)), fakeWork({ contextSize: 10 }))
  const fills = tokenizePrompt(raw('2 '.repeat(10)), fakeWork({ contextSize: 10 }))

  expect(await fits).toHaveLength(9)
  await expect(fills).rejects.toMatchObject({
    code: 'context_length',
    details: { inputTokens: 10, contextSize: 10 },
  })
})

test('the token count of a text that is far too long is an estimate', async () => {
  const tokenize = async () => {
    throw contextLengthExceeded(5_000, 10)
  }

  expect(await countTokens(raw('2'), fakeWork({ tokenize }))).toBe(5_000)
  await expect(tokenizePrompt(raw('2'), fakeWork({ tokenize }))).rejects.toMatchObject({
    details: { inputTokens: 5_000 },
  })
})

test.each<[what: string, fake: Fake, kept: readonly (readonly number[])[]]>([
  ['a count', {}, [[2, 3]]],
  ['a count beyond the context', { contextSize: 1 }, [[2, 3]]],
  ['an estimate', { tokenize: () => Promise.reject(contextLengthExceeded(5_000, 10)) }, []],
  ['an aborted count', { signal: AbortSignal.abort() }, []],
])('%s is kept if it has all tokens', async (_what, fake, kept) => {
  const lists: (readonly Token[])[] = []

  await countTokens(raw('2 3'), { ...fakeWork(fake), keepCounted: (tokens) => lists.push(tokens) })

  expect(lists).toEqual(kept)
})

test('a counted prompt is neither rendered nor tokenized again, and truncated as any other', async () => {
  const tokenize = () => Promise.reject(new Error('tokenized again'))
  const work = fakeWork({ tokenize, contextSize: 3 })
  const counted = (...tokens: number[]) => ({ ...work, countedPrompt: tokens as Token[] })

  expect(await tokenizePrompt(chat(message('user', '2 3')), counted(2, 3))).toEqual([2, 3])
  expect(work.rendered).toEqual([])
  await expect(tokenizePrompt(raw('2 3 4'), counted(2, 3, 4))).rejects.toMatchObject({
    code: 'context_length',
    details: { inputTokens: 3 },
  })

  const turned = fakeWork({ contextSize: 60 })
  const long = chat(...turns(20), message('user', '98'))
  const whole = { ...turned, countedPrompt: Array<Token>(401).fill(2 as Token) }
  expect(await tokenizePrompt(long, whole)).toEqual(await tokenizePrompt(long, turned))
})

/** Questions and answers of ten tokens each, numbered from 2. */
const turns = (count: number): Message[] =>
  Array.from({ length: count }, (_, index) => [
    message('user', `${index + 2} `.repeat(10)),
    message('assistant', '99 '.repeat(10)),
  ]).flat()

test.each([
  [1_000, 20],
  [400, 14],
  [140, 5],
  [60, 2],
  [40, 1],
  [20, 0],
])('in a context of %i tokens, %i of 20 turns stay: as many as fit', async (contextSize, kept) => {
  const work = fakeWork({ contextSize })
  const request = { ...chat(message('system', '3'), ...turns(20), message('user', '98')), maxTokens: 1_000 }

  const tokens = await tokenizePrompt(request, work)

  expect(tokens).toHaveLength(1 + kept * 20 + 1)
  expect(tokens[0]).toBe(3)
  expect(tokens.at(-1)).toBe(98)
  expect(work.rendered.length).toBeLessThanOrEqual(6)
})

test('all system messages stay, and move to the front', async () => {
  const work = fakeWork({ contextSize: 30 })
  const request = chat(...turns(1), message('system', '7'), ...turns(1), message('system', '8'))

  const tokens = await tokenizePrompt({ ...request, maxTokens: 1 }, work)

  expect(tokens.slice(0, 3)).toEqual([7, 8, 2])
})

test('a small output limit leaves more of the conversation', async () => {
  const request = chat(...turns(20), message('user', '98'))

  const few = await tokenizePrompt({ ...request, maxTokens: 4 }, fakeWork({ contextSize: 210 }))
  const many = await tokenizePrompt({ ...request, maxTokens: 100 }, fakeWork({ contextSize: 210 }))

  expect(few).toHaveLength(201)
  expect(many).toHaveLength(141)
})

test('the last message may take the room for the output', async () => {
  const request = chat(...turns(2), message('user', '98 '.repeat(99)))

  expect(await tokenizePrompt(request, fakeWork())).toHaveLength(99)
})

test.each([
  ['a message that is too long alone', [message('user', '2 '.repeat(100))]],
  ['a last message that is too long', [...turns(1), message('user', '2 '.repeat(100))]],
  ['system messages that fill the context', [message('system', '2 '.repeat(100)), ...turns(1)]],
])('%s is rejected, with the length of the whole conversation', async (_what, messages) => {
  const all = textOf(messages).split(' ').filter(Boolean).length

  await expect(tokenizePrompt(chat(...messages), fakeWork())).rejects.toMatchObject({
    code: 'context_length',
    details: { inputTokens: all, contextSize: 100 },
  })
})

test('nothing is dropped without `overflow`', async () => {
  const request = { ...chat(...turns(20)), overflow: 'error' } as const

  await expect(tokenizePrompt(request, fakeWork())).rejects.toMatchObject({ code: 'context_length' })
})

test('a text is never truncated', async () => {
  const request = { ...text('2 '.repeat(100)), overflow: 'truncate' } as const

  await expect(tokenizePrompt(request, fakeWork())).rejects.toMatchObject({ code: 'context_length' })
})

test('a template that rejects the rest of a conversation does not reject the request', async () => {
  const template = (messages: readonly Message[]): string => {
    if (messages[0]?.role !== 'user') throw invalidRequest('Conversations begin with a user.')
    return textOf(messages)
  }
  const request = chat(message('user', '2 '.repeat(200)), message('assistant', 'Sure:'))

  await expect(tokenizePrompt(request, fakeWork({ template }))).rejects.toMatchObject({
    code: 'context_length',
  })
})

test('a template that rejects the whole conversation rejects the request', async () => {
  const template = (): string => {
    throw invalidRequest('Conversations begin with a user.')
  }

  await expect(tokenizePrompt(chat(...turns(20)), fakeWork({ template }))).rejects.toMatchObject({
    code: 'invalid_request',
  })
})

test('truncation stops when the signal aborts', async () => {
  const work = fakeWork({ signal: AbortSignal.abort() })

  await expect(tokenizePrompt(chat(...turns(20)), work)).rejects.toMatchObject({ code: 'context_length' })
  expect(work.rendered).toHaveLength(1)
})

test('each attempt at truncation increases the step counter', async () => {
  const work = fakeWork({ contextSize: 60 })

  await tokenizePrompt(chat(...turns(20), message('user', '98')), work)

  expect(work.progress.steps).toBe(work.rendered.length - 1)
})

test('an empty prompt becomes the start token, and is rejected for a model without one', async () => {
  const request: GenerateRequest = { model: 'm', input: { kind: 'text', template: false, prompt: [''] } }

  await expect(tokenizePrompt(request, fakeWork())).rejects.toMatchObject({ code: 'invalid_request' })
  expect(await tokenizePrompt(request, fakeWork({ bos: bos as Token }))).toEqual([bos])
  expect(await tokenizePrompt(request, fakeWork({ start: 7 as Token }))).toEqual([7])
  expect(await countTokens(request, fakeWork())).toBe(0)
})
