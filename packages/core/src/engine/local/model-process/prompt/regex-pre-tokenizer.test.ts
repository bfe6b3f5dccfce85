import { describe, expect, test } from 'vitest'
import { RegexPreTokenizer } from './regex-pre-tokenizer.ts'

const open = (pre: string | undefined, model = 'gpt2', more: object = {}): RegexPreTokenizer =>
  RegexPreTokenizer.of({ model, pre, ...more }) as RegexPreTokenizer
const measureOf = (pre: string | undefined, model?: string) => (text: string) =>
  open(pre, model).measureLongWord(text)

/** Each stands for the pre-tokenizers with the same rule for words. */
const preTokenizers = ['gpt-4o', 'exaone-moe', 'poro-chat', 'whitespace']

test('only vocabularies that use std::regex for words have one', () => {
  expect(RegexPreTokenizer.of({ model: 'llama', pre: 'default' })).toBeUndefined()
  expect(RegexPreTokenizer.of({ model: 'bert' })).toBeUndefined()
  for (const pre of ['qwen2', 'llama-bpe', 'gpt-2', 'kimi-k2', 'gemma4'])
    expect(RegexPreTokenizer.of({ model: 'gpt2', pre })).toBeUndefined()
})

test('an unknown kind of vocabulary is taken for one that uses std::regex', () => {
  expect(measureOf('some-later-name', 'some-later-model')('a'.repeat(30_000))).toBeGreaterThan(29_000)
  expect(RegexPreTokenizer.of({})?.isRisky('a'.repeat(30_000))).toBe(true)
})

test.each([undefined, '', 'default', 'constructor', 'some-later-name'])(
  'words are measured with the pre-tokenizer %j',
  (pre) => {
    expect(measureOf(pre)('a'.repeat(30_000))).toBeGreaterThan(29_000)
  },
)

const texts = {
  English: 'The quick brown fox jumps over the lazy dog, and it never comes back. ',
  Russian: 'Съешь же ещё этих мягких французских булок, да выпей чаю. ',
  Greek: 'Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. ',
  Arabic: 'نص حكيم له سر قاطع وذو شأن عظيم, مكتوب على ثوب أخضر. ',
  Hindi: 'ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश करने वाले, राम. ',
  Thai: 'เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน\n',
  Korean: '키스의 고유조건은 입술끼리 만나야 하고, 특별한 기술은 필요치 않다. ',
  Hebrew: 'דג סקרן שט בים מאוכזב ולפתע מצא לו חברה. ',
  'source code': '\tif (count > 0) {\n\t\treturn items[index + 1]\n\t}\n\n',
  'a table': '| name | size |\n| ---------------- | -------- |\n| one | 1 |\n',
}
const unspacedTexts = {
  Chinese: '天地玄黄，宇宙洪荒。日月盈昃，辰宿列张。',
  Japanese: 'いろはにほへとちりぬるを、わかよたれそつねならむ。',
  'minified JSON': '{"name":"some","items":[{"id":1,"tags":["a","b"]}]},',
  base64:
    'iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAA',
  hexadecimal: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
}

describe.each(preTokenizers)('with the pre-tokenizer %s', (pre) => {
  const measure = measureOf(pre)

  test.each(Object.entries(texts))('%s has no long words', (_name, text) => {
    expect(measure(text.repeat(2_000))).toBe(0)
  })

  test('a word of 500 letters is never long', () => {
    const text = `${'a'.repeat(500)}. 1\n`.repeat(40)
    for (let at = 0; at < 520; at += 13) expect(measure(text.slice(at))).toBe(0)
  })

  test.each([
    ['letters', 'a'],
    ['letters in two cases', 'aB'],
    ['letters outside of the Basic Multilingual Plane', '𝐀'],
    ['letters with marks', 'e\u0301'],
    ['marks between signs', '!\u0301'],
    ['letters of many scripts', 'aбγ漢ア'],
    ['a letter that Unicode assigned lately', '\uA7CB'],
    ['unassigned characters between signs', '!\u{10FFFE}'],
    ['signs', '!'],
    ['brackets', '([{'],
    ['half a character', '\uD835'],
    ['digits', '7'],
    ['digits of another script', '๗'],
    ['digits of another script between letters', 'ก๗'],
  ])('a word of %s is measured wherever it begins', (_what, part) => {
    if (pre === 'poro-chat' && /[!(]/.test(part)) return
    const word = part.repeat(Math.ceil(3_000 / part.length))
    for (const before of [0, 1, 7, 500, 511, 512, 513])
      expect(measure(`${'a, 1\n'.repeat(200).slice(0, before)} ${word} b, 2\n`)).toBeGreaterThan(1_500)
  })
})

test.each(['gpt-4o', 'exaone-moe'])('white space is one word, with the pre-tokenizer %s', (pre) => {
  for (const part of [' ', '\n', ' \n', '\t \r\n', '\u0085 ', '\u3000', '\uFEFF '])
    expect(measureOf(pre)(part.repeat(3_000))).toBeGreaterThan(2_000)
})

test.each(['gpt-4o', 'exaone-moe', 'poro-chat'])('%s divides texts without spaces', (pre) => {
  for (const text of Object.values(unspacedTexts)) {
    const isDivided = pre !== 'poro-chat' || /[,。]/.test(text)
    expect(measureOf(pre)(text.repeat(500)) > 0).toBe(!isDivided)
  }
})

test('single spaces divide words, except with the pre-tokenizer exaone-moe', () => {
  const text = 'word '.repeat(2_000)
  expect(preTokenizers.map((pre) => measureOf(pre)(text) > 0)).toEqual([false, true, false, false])
})

test('a space beside other white space is risky only where it crashes', () => {
  for (const text of ['a  b', 'a \n', '\t a', 'a\u0085 b']) {
    expect(open('whitespace').isRisky(text)).toBe(true)
    expect(open('whitespace', 'whitespace').isRisky(text)).toBe(false)
    expect(open('gpt-4o').isRisky(text)).toBe(false)
  }
  expect(open('whitespace').isRisky('a b\nc\n\nd')).toBe(false)
})

test('dozens of special tokens are risky, but not text that resembles them', () => {
  const tokens = ['<', 'a', '<unk>', '<s>', '</s>', '[INST]', '-|', '']
  const pre = open('tekken', 'gpt2', { tokens, token_type: [1, 1, 2, 3, 3, 3, 4, 3] })

  for (const special of ['<s>', '[INST]', '-|', '</s> and more '])
    expect([16, 17].map((count) => pre.isRisky(`${special}, 1`.repeat(count)))).toEqual([false, true])
  expect(pre.isRisky('<span class="s">a</span> [IN] - | '.repeat(1_000))).toBe(false)
})

test('a text with many special tokens is safe up to the first one that is too many', () => {
  const pre = open('tekken', 'gpt2', { tokens: ['<s>'], token_type: [3] })
  const message = '<s>some words, and more'

  expect(pre.limitSlice(message.repeat(100))).toBe(16 * message.length)
  expect(pre.limitSlice(message.repeat(16))).toBe(16 * message.length)
  expect(open('gpt-4o').limitSlice('some words')).toBe(10)
  expect([0, 1, 2].map((count) => pre.isUniform(message.repeat(count)))).toEqual([true, true, false])
  expect(open('gpt-4o').isUniform(message.repeat(2))).toBe(true)
})
