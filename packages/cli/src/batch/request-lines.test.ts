import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { openRequests, type RequestLine } from './request-lines.ts'

const folder = emptyFolder()

const anthropic = (id: string, text = 'Hi') =>
  JSON.stringify({ custom_id: id, params: { model: 'tiny', messages: [{ role: 'user', content: text }] } })
const openai = (id: string, url = '/v1/embeddings') =>
  JSON.stringify({ custom_id: id, method: 'POST', url, body: { model: 'tiny', input: 'Hi' } })

/** Yields a text in pieces that split lines and characters. */
async function* bytesOf(text: string, pieceBytes = 3): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let from = 0; from < bytes.length; from += pieceBytes) yield bytes.subarray(from, from + pieceBytes)
}

async function read(text: string): Promise<readonly RequestLine[]> {
  const lines: RequestLine[] = []
  for await (const line of (await openRequests('-', bytesOf(text))).lines) lines.push(line)
  return lines
}

test('finds the format and the endpoint in the first request', async () => {
  writeFileSync(join(folder, 'requests.jsonl'), `${openai('a')}\n${openai('b')}\n`)

  const opened = await openRequests(join(folder, 'requests.jsonl'))

  expect(opened).toMatchObject({ format: 'openai', endpoint: '/v1/embeddings', name: 'requests.jsonl' })
  const sizes = []
  for await (const { bytes } of opened.lines) sizes.push(bytes)
  expect(sizes).toEqual([(opened.totalBytes ?? 0) / 2, opened.totalBytes])
  expect(await openRequests('-', bytesOf(anthropic('a')))).toMatchObject({
    format: 'anthropic',
    name: 'stdin',
  })
})

test('a line ends at a line feed only, and may have a carriage return or be blank', async () => {
  const requests = [anthropic('a', 'one\u2028two\u2029thrée 🎈'), anthropic('b')] as const

  const lines = await read(`\ufeff\n${requests[0]}\r\n  \n${requests[1]}`)

  expect(lines.map(({ text }) => text)).toEqual(['', requests[0], '', requests[1]])
})

test.each([
  ['', 'stdin has no requests.'],
  [' \n\n', 'stdin has no requests.'],
  ['{"custom_id"', 'stdin:1: the line is not valid JSON.'],
  ['[]', 'stdin:1: expected a JSON object.'],
  ['{"custom_id":"a"}', 'stdin:1: expected a request with custom_id and params (Anthropic), or with'],
  [`\n${anthropic('')}`, 'stdin:2: custom_id: expected a text that is not empty.'],
  ['{"params":{}}', 'stdin:1: custom_id: expected a text that is not empty.'],
  [`${anthropic('a')}\n\n${anthropic('a')}`, "stdin:3: custom_id: 'a' is also the id in line 1."],
  [
    `${anthropic('a')}\n${openai('b')}`,
    'stdin:2: expected a request in the format of Anthropic, as in line 1, got',
  ],
  [
    `${openai('a')}\n${anthropic('b')}`,
    'stdin:2: expected a request in the format of OpenAI, as in line 1, got',
  ],
  [
    `${openai('a')}\n${openai('b', '/v1/completions')}`,
    "stdin:2: url: expected '/v1/embeddings', as in line 1",
  ],
])('%j is an error with the number of the line', async (text, message) => {
  await expect(read(text)).rejects.toThrow(message)
})

test('text in another encoding is an error', async () => {
  const bytes = Buffer.from(anthropic('a', 'ä'), 'latin1')

  await expect(openRequests('-', [bytes] as never)).rejects.toThrow('stdin:1: the line is not valid UTF-8.')
})

test('reads the file only as far as its lines are taken', async () => {
  let pieces = 0
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (; ; pieces++) yield Buffer.from(`${anthropic(`id-${pieces}`)}\n`)
  }

  const { lines } = await openRequests('-', endless())
  for await (const { text } of lines) if (text.includes('id-9')) break

  expect(pieces).toBe(9)
})

test('a line without an end is an error, and is not collected', async () => {
  let bytes = 0
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (const piece = Buffer.alloc(1_000_000, '['); ; bytes += piece.length) yield piece
  }

  await expect(openRequests('-', endless())).rejects.toThrow('stdin:1: the line is longer than 64 MB.')
  expect(bytes).toBeLessThan(70_000_000)
})

test('an unreadable file is an error with its path', async () => {
  await expect(openRequests(join(folder, 'none'))).rejects.toThrow(`${join(folder, 'none')} does not exist`)
  await expect(openRequests(folder)).rejects.toThrow(`the file ${folder} cannot be read (EISDIR)`)
})
