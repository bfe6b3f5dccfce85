/** The pieces of a text, as llama.cpp's server returns them. */
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm, type Llm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Listening, listen } from '../support/listen.ts'
import { noiseModel } from '../support/models.ts'

let folder: string
let llm: Llm
let server: Listening

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pieces-'))
  await copyFile(noiseModel, join(folder, 'spm.gguf'))
  llm = await createLlm({ models: folder, local: { contextSize: 512, reloadCooldown: 0 } })
  server = await listen(toNodeHandler(routesFor(undefined, { llamaServerRoutes: true }), llm))
})

afterAll(async () => {
  await server.close()
  await llm.close()
  await rm(folder, { recursive: true })
})

interface Token {
  readonly id: number
  readonly piece: string | readonly number[]
}

async function tokenize(model: string, content: string): Promise<readonly Token[]> {
  const [pieces, ids] = await Promise.all(
    [true, false].map(async (with_pieces) => {
      const response = await fetch(`${server.url}/tokenize`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model, content, with_pieces }),
      })
      expect(response.status).toBe(200)
      return ((await response.json()) as { tokens: unknown }).tokens
    }),
  )
  const tokens = pieces as readonly Token[]
  expect(tokens.map(({ id }) => id)).toEqual(ids)
  return tokens
}

const bytesOf = ({ piece }: Token): readonly number[] =>
  typeof piece === 'string' ? [...Buffer.from(piece)] : piece

// Byte-level BPE, and SentencePiece with byte tokens.
test.each(['tiny', 'spm'])(
  'the pieces of the model %s join to the text, and parts of characters are bytes',
  async (model) => {
    const text = 'Hello, wörld 🍂🦙'
    const tokens = await tokenize(model, text)

    expect(Buffer.from(tokens.flatMap(bytesOf)).toString().trimStart()).toBe(text)
    const parts = tokens.flatMap(({ piece }) => (typeof piece === 'string' ? [] : [piece]))
    expect(parts.length).toBeGreaterThan(0)
    for (const bytes of parts) expect(Buffer.from(bytes).toString()).toContain('\uFFFD')
    for (const { piece } of tokens) if (typeof piece === 'string') expect(piece).not.toContain('\uFFFD')
  },
)

test('the piece of a special token is its text', async () => {
  const [first] = await tokenize('tiny', '<|im_start|>user')

  expect(first?.piece).toBe('<|im_start|>')
})
