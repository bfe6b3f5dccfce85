/**
 * `create` must reject forged GGUF files by their content, within 3 s and without reading the complete file.
 */
import { createHash } from 'node:crypto'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm, type Llm } from '@modelmount/core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { forgeries } from '../support/forgeries.ts'
import { arrayEntry, gguf, header, tensor, text, u32, u64 } from '../support/gguf.ts'

let folder: string
let llm: Llm
const { signal } = new AbortController()

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'forged-'))
  llm = await createLlm({ models: folder })
})

afterAll(async () => {
  await llm.close()
  await rm(folder, { recursive: true })
})

const digestOf = (bytes: Uint8Array): `sha256:${string}` =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`

/** Uploads a file and creates a model from it. Returns the error, or an empty object after success. */
async function outcomeOf(bytes: Buffer): Promise<{ readonly code?: string; readonly message?: string }> {
  const digest = digestOf(bytes) as Parameters<Llm['models']['blobs']['write']>[0]
  await llm.models.blobs.write(digest, once(bytes), signal)
  return make(digest)
}

async function make(digest: string): Promise<{ readonly code?: string; readonly message?: string }> {
  try {
    for await (const _step of llm.models.create({ name: 'forged', files: { 'model.gguf': digest } }));
    return {}
  } catch (error) {
    return error as { code: string; message: string }
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

test('create rejects more than a hundred forged files as invalid requests within 3 s each', async () => {
  const refused: string[] = []
  for (const { name, bytes } of forgeries) {
    const startedAt = performance.now()
    const { code, message } = await outcomeOf(bytes())
    expect(performance.now() - startedAt, name).toBeLessThan(3_000)
    if (code === undefined) continue
    expect(code, `${name}: ${message}`).toBe('invalid_request')
    expect(message, name).not.toContain(folder)
    refused.push(name)
  }

  expect(refused.length).toBeGreaterThan(100)
}, 300_000)

const tooMany = 2n ** 40n
/** Headers that declare an absurd number or size of parts. */
const promises: Readonly<Record<string, Buffer>> = {
  'too many tensors': header(3, tooMany, 0n),
  'too many metadata entries': header(3, 0n, tooMany),
  'a text of gigabytes': Buffer.concat([header(3, 0n, 1n), text('general.name'), u32(8), u64(8 * 1024 ** 3)]),
  'a key of gigabytes': Buffer.concat([header(3, 0n, 1n), u64(8 * 1024 ** 3)]),
  'an array of billions': gguf([Buffer.concat([text('a.b'), u32(9), u32(4), u64(1_500_000_000)])], []),
  'an array of too many texts': gguf([Buffer.concat([text('a.b'), u32(9), u32(8), u64(800_000_000)])], []),
  'deeply nested arrays': gguf(
    [
      Buffer.concat([
        text('a.b'),
        u32(9),
        ...Array.from({ length: 200 }, () => Buffer.concat([u32(9), u64(1)])),
      ]),
    ],
    [],
  ),
  'a tensor of petabytes': gguf([arrayEntry('a.b', 4)], [tensor('x', [2 ** 40, 2 ** 10])]),
}

test.each(Object.entries(promises))(
  'create rejects a header with %s without reading the file of 8 GB',
  async (_what, head) => {
    const digest = `sha256:${createHash('sha256').update(head).digest('hex')}`
    // A sparse file: it takes no disk space, and reading it would take minutes.
    const file = await open(join(folder, 'blobs', digest.replace(':', '-')), 'w')
    await file.write(head)
    await file.truncate(8 * 1024 ** 3)
    await file.close()
    const before = process.memoryUsage.rss()
    const startedAt = performance.now()

    const { code, message } = await make(digest)

    expect(code, message).toBe('invalid_request')
    expect(performance.now() - startedAt).toBeLessThan(3_000)
    expect(process.memoryUsage.rss() - before).toBeLessThan(300 * 1024 ** 2)
  },
)
