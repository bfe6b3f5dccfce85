import { modelPath } from '@modelmount/tiny-model'
import { getLlama, type LlamaModel, type Token } from 'node-llama-cpp'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { budgetOf } from '../../../../../../../test/support/budgets.ts'
import { noiseModel } from '../../../../../../../test/support/models.ts'
import { TenantCpu } from '../workers/cpu-budget.ts'
import { Turns } from '../workers/turns.ts'
import { Tokenizer, type TokenizerIsolation } from './tokenizer.ts'

const budget = budgetOf()
const contextSize = 1_000_000

/** Prose, code, other scripts and template markup. */
const prose =
  'The quick brown fox: "jumps", 3.14 times.\n\n\tif (x) { return 1 }\n  Über naïve 东京 мир 😀👩‍👩‍👧 <|im_end|>\n<|im_start|>user\n  aaaa'
const longText = (length: number): string => {
  let text = ''
  for (let n = 0; text.length < length; n++) text += `${prose} ${n} and so on `
  return text
}

describe.each([
  ['BPE', modelPath],
  ['SPM', noiseModel],
])('%s', (_kind, path) => {
  let model: LlamaModel
  let calls: number[]
  let tokenize: (text: string) => readonly Token[]

  beforeAll(async () => {
    const llama = await getLlama({ build: 'never', skipDownload: true, progressLogs: false, maxThreads: 1 })
    model = await llama.loadModel({ modelPath: path })
    tokenize = (text) => {
      calls.push(text.length)
      return model.tokenize(text, true)
    }
  })

  afterAll(() => model.dispose())

  test.each([0, 10, 32_768, 32_769, 300_000])(
    '%d characters give the same tokens as in one go',
    async (length) => {
      calls = []
      const text = longText(length).slice(0, length)

      const tokens = await new Tokenizer(tokenize, contextSize, new Turns()).tokenize(text, budget)

      expect(tokens).toEqual(model.tokenize(text, true))
      expect(Math.max(...calls)).toBeLessThanOrEqual(32_768)
    },
  )

  test('a text without spaces is tokenized exactly, too', async () => {
    calls = []
    const text = '东京😀'.repeat(20_000)

    const tokens = await new Tokenizer(tokenize, contextSize, new Turns()).tokenize(text, budget)

    expect(tokens).toEqual(model.tokenize(text, true))
  })

  test('a text with a long part without spaces is tokenized exactly, too', async () => {
    calls = []
    const text = `${longText(50_000)}${'东京😀'.repeat(10_000)} ${longText(50_000)}`

    const tokens = await new Tokenizer(tokenize, contextSize, new Turns()).tokenize(text, budget)

    expect(tokens).toEqual(model.tokenize(text, true))
  })

  test('a text that is far too long is not tokenized to its end', async () => {
    calls = []
    const tokens = new Tokenizer(tokenize, 100, new Turns()).tokenize('a'.repeat(10_000_000), budget)

    await expect(tokens).rejects.toMatchObject({ code: 'context_length' })
    expect(calls.reduce((sum, one) => sum + one, 0)).toBeLessThan(70_000)
  })
})

const letters = (text: string): readonly Token[] => [...text].map((letter) => letter.codePointAt(0) as Token)

describe('a text without spaces', () => {
  const sliceLength = 8 * 1024
  /** Tokenizes a text. Returns its tokens, and the lengths of the texts that the library got. */
  async function tokenizeUnspaced(
    text: string,
    tokenize: (text: string) => readonly Token[],
    contextSize: number,
    stopAfter?: number,
  ) {
    const lengths: number[] = []
    const tokenizer = new Tokenizer(
      (part) => {
        lengths.push(part.length)
        return tokenize(part)
      },
      contextSize,
      new Turns(),
    )
    lengths.length = 0
    const tokens = await tokenizer.tokenize(text, budgetOf(), stopAfter).catch((cause: unknown) => cause)
    return { tokens, lengths }
  }

  test.each([undefined, Number.POSITIVE_INFINITY])(
    'is tokenized once after its first slice, with stopAfter = %s',
    async (stopAfter) => {
      const text = 'x'.repeat(100_000)

      const { tokens, lengths } = await tokenizeUnspaced(text, letters, contextSize, stopAfter)

      expect(tokens).toEqual(letters(text))
      expect(lengths).toEqual([sliceLength, text.length])
    },
  )

  test('is tokenized once with the rest, and not with the text before it', async () => {
    const words = 'word '.repeat(10_000)
    const text = `${words}${'x'.repeat(20_000)} ${words}`

    const { tokens, lengths } = await tokenizeUnspaced(text, letters, contextSize)

    expect(tokens).toEqual(letters(text))
    expect(lengths.at(-1)).toBeLessThan(text.length - words.length + 10)
    expect(Math.max(...lengths.slice(0, -1))).toBeLessThanOrEqual(sliceLength)
  })

  test('is never tokenized as a whole if it is too long', async () => {
    const { tokens, lengths } = await tokenizeUnspaced('x'.repeat(100_000), letters, 10_000)

    expect(tokens).toMatchObject({ code: 'context_length', details: { inputTokens: 100_000 } })
    expect(lengths).toEqual(Array(4).fill(sliceLength))
  })

  test('is tokenized as a whole as soon as it no longer seems too long', async () => {
    /** A thousand y are one token. */
    const compress = (text: string) => letters(text.replace(/y{1000}/g, 'z'))
    const text = 'x'.repeat(sliceLength) + 'y'.repeat(92_000)

    const { tokens, lengths } = await tokenizeUnspaced(text, compress, 10_000)

    expect(tokens).toEqual(compress(text))
    expect(lengths).toEqual([...Array(6).fill(sliceLength), text.length])
  })
})

test('one slice is tokenized per turn of the event loop, over all texts', async () => {
  let inTurn = 0
  let most = 0
  const tokenizer = new Tokenizer(
    (text) => {
      most = Math.max(most, ++inTurn)
      setImmediate(() => {
        inTurn = 0
      })
      return letters(text)
    },
    contextSize,
    new Turns(),
  )
  inTurn = most = 0

  await Promise.all(Array.from({ length: 8 }, () => tokenizer.tokenize('word '.repeat(20_000), budget)))

  expect(most).toBe(1)
})

test('a short text does not wait for all slices of a long text', async () => {
  const order: string[] = []
  const tokenizer = new Tokenizer(letters, contextSize, new Turns())

  await Promise.all([
    tokenizer.tokenize('word '.repeat(50_000), budget).then(() => order.push('long')),
    tokenizer.tokenize('short', budget).then(() => order.push('short')),
  ])

  expect(order).toEqual(['short', 'long'])
})

test("a tenant's short text waits for two slices at most, however many texts of another tenant wait", async () => {
  const tenants = new TenantCpu()
  const order: string[] = []
  const tokenizer = new Tokenizer(
    (text) => {
      order.push(text.length > 10 ? 'long' : text)
      return letters(text)
    },
    contextSize,
    new Turns(),
  )
  order.length = 0
  const greedy = Array.from({ length: 64 }, () =>
    tokenizer.tokenize('word '.repeat(20_000), budgetOf({ tenant: 'greedy' }, tenants)),
  )
  while (order.length < 3) await new Promise((resolve) => setImmediate(resolve))

  await tokenizer.tokenize('short', budgetOf({ tenant: 'ann' }, tenants))

  expect(order.indexOf('short')).toBeLessThanOrEqual(5)
  await Promise.all(greedy)
})

describe('while the model decodes, and after a slice of a long text', () => {
  afterEach(() => void vi.useRealTimers())

  const sliceMs = 2
  /** Tokenizes a text of this length. Returns how long it waits, in ms. */
  async function waitOf(length: number, isolation?: TokenizerIsolation): Promise<number> {
    vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] })
    const tokenizer = new Tokenizer(
      (text) => {
        if (text.includes('word ')) vi.advanceTimersByTime(sliceMs)
        return letters(text)
      },
      contextSize,
      new Turns(() => true),
      isolation,
    )
    const budget = budgetOf()
    await tokenizer.tokenize('word '.repeat(1_000), budget)
    const from = performance.now()
    let doneAt: number | undefined
    const tokens = tokenizer.tokenize('x'.repeat(length), budget).then(() => {
      doneAt = performance.now()
    })
    while (doneAt === undefined) {
      for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
      vi.advanceTimersByTime(1)
    }
    await tokens
    return doneAt - from
  }

  test('a text of 4 KiB does not wait', async () => {
    expect(await waitOf(4 * 1024)).toBe(0)
  })

  test.each([
    ['waits if special tokens make it take longer', false, 4 * sliceMs],
    ['does not wait if they do not', true, 0],
  ])('a short text %s', async (_what, isUniform, expected) => {
    const isolation: TokenizerIsolation = {
      isNeeded: () => false,
      limitSlice: (text) => text.length,
      isUniform: () => isUniform,
      tokenize: () => Promise.reject(new Error('isolated')),
    }

    expect(await waitOf(800, isolation)).toBe(expected)
  })

  test('a longer text waits until decoding had four fifths of the time', async () => {
    expect(await waitOf(4 * 1024 + 1)).toBe(4 * sliceMs)
  })
})

test('an aborted call is not tokenized any further', async () => {
  const call = new AbortController()
  let calls = 0
  const tokenizer = new Tokenizer(
    (text) => {
      if (++calls > 10) call.abort()
      return letters(text)
    },
    contextSize,
    new Turns(),
  )

  await tokenizer.tokenize('word '.repeat(100_000), budgetOf({ signal: call.signal }))

  expect(calls).toBe(11)
})

test('an exception of the library is an error of the text', async () => {
  const tokenizer = new Tokenizer(
    (text) => {
      if (text.includes('bad')) throw new Error('Failed to process regex')
      return letters(text)
    },
    contextSize,
    new Turns(),
  )

  await expect(tokenizer.tokenize('a bad text', budget)).rejects.toMatchObject({ code: 'invalid_request' })
  expect(await tokenizer.tokenize('another', budget)).toEqual(letters('another'))
})

describe('a slice that must be isolated', () => {
  const isolationOf = (
    tokenize: TokenizerIsolation['tokenize'],
  ): { isolation: TokenizerIsolation; isolated: string[] } => {
    const isolated: string[] = []
    const isolation: TokenizerIsolation = {
      isNeeded: (text) => /x{10}/.test(text),
      limitSlice: (text) => text.length,
      isUniform: () => true,
      tokenize: (text, budget) => {
        isolated.push(text)
        return tokenize(text, budget)
      },
    }
    return { isolation, isolated }
  }

  test('never reaches the library here, and its tokens take their place in the text', async () => {
    const seen: string[] = []
    const { isolation, isolated } = isolationOf(async (text) => letters(text))
    const tokenizer = new Tokenizer(
      (text) => {
        seen.push(text)
        return letters(text)
      },
      contextSize,
      new Turns(),
      isolation,
    )
    const text = `${'word '.repeat(10_000)}${'x'.repeat(100)} ${'word '.repeat(10_000)}end`

    expect(await tokenizer.tokenize(text, budget)).toEqual(letters(text))

    expect(isolated).toHaveLength(1)
    expect(isolated[0]).toContain('x'.repeat(100))
    expect(seen.filter((one) => one.includes('xx'))).toEqual([])
  })

  test('does not delay other texts', async () => {
    let finish = (_tokens: readonly Token[]): void => {}
    const { isolation } = isolationOf(
      () =>
        new Promise((resolve) => {
          finish = resolve
        }),
    )
    const tokenizer = new Tokenizer(letters, contextSize, new Turns(), isolation)

    const slow = tokenizer.tokenize('x'.repeat(100), budget)

    expect(await tokenizer.tokenize('other', budget)).toEqual(letters('other'))
    finish(letters('x'))
    expect(await slow).toEqual(letters('x'))
  })

  test('counts towards the CPU time of the call', async () => {
    const { isolation, isolated } = isolationOf(async (text, budget) => {
      budget.charge(4_000)
      return letters(text)
    })
    const tokenizer = new Tokenizer(letters, contextSize, new Turns(), isolation)
    const text = `${'x'.repeat(100)} `.repeat(4_000)

    await expect(tokenizer.tokenize(text, budgetOf())).rejects.toMatchObject({
      code: 'invalid_request',
    })
    expect(isolated).toHaveLength(3)
  })
})

test('a chat of many messages is tokenized in this process, with a few special tokens in each slice', async () => {
  const countSpecial = (text: string): number => text.split('<s>').length - 1
  const slices: string[] = []
  const isolation: TokenizerIsolation = {
    isNeeded: (text) => countSpecial(text) > 4,
    limitSlice: (text) => {
      const parts = text.split('<s>')
      return parts.length > 5 ? parts.slice(0, 5).join('<s>').length : text.length
    },
    isUniform: () => false,
    tokenize: () => Promise.reject(new Error('isolated')),
  }
  const tokenizer = new Tokenizer(
    (text) => {
      slices.push(text)
      return letters(text)
    },
    contextSize,
    new Turns(),
    isolation,
  )
  const text = '<s>a message of some words'.repeat(100)
  slices.length = 0

  expect(await tokenizer.tokenize(text, budget)).toEqual(letters(text))
  expect(Math.max(...slices.map(countSpecial))).toBe(4)
})
