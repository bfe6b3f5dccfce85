/** Uploads of blobs (model files), which may be larger than any other request body. */
import { readdirSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { scriptedEngine } from '@modelmount/core/testing'
import { expect, vi } from 'vitest'
import { expectOllamaError, soon } from './calls.ts'
import { folderOf } from './ollama-calls.ts'
import { digestOf, expectAnswers } from './ollama-routes.ts'
import type { OllamaRequirementId } from './requirements.ts'
import type { Check, Given, InFront } from './suite.ts'

const mayChange = (models = folderOf({})): Given => ({ models, scopes: ['inference', 'models'] })

/** URL of the blob with the digest of these bytes. */
const addressOf = (url: string, bytes: Uint8Array): string => `${url}/api/blobs/${digestOf(bytes)}`

export const blobs = {
  'ollama:blobs:large': async (serve) => {
    const url = await serve(scriptedEngine(''), mayChange())
    const bytes = new Uint8Array(40_000_000).fill(7)

    await expectAnswers(url, [
      [`POST /api/blobs/${digestOf(bytes)}`, bytes, 201, ''],
      [`HEAD /api/blobs/${digestOf(bytes)}`, undefined, 200],
    ])
  },

  'ollama:blobs:parsed-body': async (serve) => {
    const parsing =
      (parse: (bytes: Buffer) => unknown): InFront =>
      (mounted) =>
      async (req, res) =>
        mounted(Object.assign(req, { body: parse(await buffer(req)) }), res)
    const bytes = new Uint8Array(Buffer.from('{"a":1}'))
    const kept = await serve(scriptedEngine(''), { ...mayChange(), inFront: parsing((all) => all) })
    const parsed = await serve(scriptedEngine(''), {
      ...mayChange(),
      inFront: parsing((all) => JSON.parse(all.toString())),
    })

    const responses = await Promise.all(
      [kept, parsed].map((url) => fetch(addressOf(url, bytes), { method: 'POST', body: bytes })),
    )

    expect(responses.map(({ status }) => status)).toEqual([201, 400])
    await expectOllamaError(responses[1] as Response, 400, expect.stringContaining('before the body parser'))
  },

  'ollama:blobs:client-disconnects': async (serve) => {
    const models = folderOf({})
    const url = await serve(scriptedEngine(''), mayChange(models))
    const bytes = new Uint8Array(1_000_000)
    const written = (): string[] => readdirSync(join(models, 'blobs'))

    const call = request(addressOf(url, bytes), {
      method: 'POST',
      headers: { 'content-length': bytes.length },
    }).on('error', () => {})
    call.write(bytes.subarray(1))
    await vi.waitFor(() => expect(written()).not.toEqual([]), soon)
    call.destroy()

    await vi.waitFor(() => expect(written()).toEqual([]), soon)
    expect((await fetch(addressOf(url, bytes), { method: 'HEAD' })).status).toBe(404)
  },
} satisfies Partial<Record<OllamaRequirementId, Check>>
