/** Files in OpenAI's API: uploads, downloads and lists. */
import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { scriptedEngine } from '@modelmount/core/testing'
import type OpenAI from 'openai'
import { expect, vi } from 'vitest'
import { countFiles, line, sendFile, toForm, unknownIds, uploadFile, withBatches } from './batch-calls.ts'
import { expectError } from './calls.ts'
import type { OpenAIRequirementId } from './requirements.ts'
import type { Check, InFront } from './suite.ts'

const boundary = 'a-boundary'
const multipart = { 'content-type': `multipart/form-data; boundary=${boundary}` }
const part = (name: string, value: string, filename?: string): string =>
  `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${
    filename === undefined ? '' : `; filename="${filename}"`
  }\r\n\r\n${value}\r\n`
const end = `--${boundary}--\r\n`

const sendForm = (url: string, body: string) =>
  fetch(`${url}/v1/files`, { method: 'POST', headers: multipart, body })

const remove = (url: string, id: string) => fetch(`${url}/v1/files/${id}`, { method: 'DELETE' })

export const files = {
  'openai:transport:upload-roundtrip': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)
    // Several rows of the database, and bytes that are not text.
    const sent = new Uint8Array(randomBytes(700_001))

    const created = await uploadFile(url, sent)

    expect(created).toMatchObject({
      id: expect.stringMatching(/^file-[\w-]+$/),
      object: 'file',
      bytes: sent.length,
      created_at: expect.any(Number),
      expires_at: expect.any(Number),
      filename: 'requests.jsonl',
      purpose: 'batch',
      status: 'processed',
    })
    expect(await (await fetch(`${url}/v1/files/${created.id}`)).json()).toEqual(created)
    expect(await (await fetch(`${url}/v1/files`)).json()).toEqual({
      object: 'list',
      data: [created],
      first_id: created.id,
      last_id: created.id,
      has_more: false,
    })
    const content = await fetch(`${url}/v1/files/${created.id}/content`)
    expect(content.headers.get('content-type')).toBe('application/octet-stream')
    expect(content.headers.get('content-disposition')).toBe('attachment; filename="requests.jsonl"')
    expect(content.headers.get('x-content-type-options')).toBe('nosniff')
    expect(Buffer.compare(Buffer.from(await content.arrayBuffer()), sent)).toBe(0)
    expect(await (await remove(url, created.id)).json()).toEqual({
      id: created.id,
      object: 'file',
      deleted: true,
    })
    for (const response of [
      await fetch(`${url}/v1/files/${created.id}`),
      await fetch(`${url}/v1/files/${created.id}/content`),
      await remove(url, created.id),
    ])
      await expectError(response, 404, { param: 'id', code: null })
    expect(await countFiles(url)).toBe(0)
  },

  'openai:transport:upload-client-disconnects': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)
    const start = `${part('purpose', 'batch')}--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n`
    const call = request(`${url}/v1/files`, {
      method: 'POST',
      headers: { ...multipart, 'content-length': 10_000_000 },
    }).on('error', () => {})

    await new Promise<void>((resolve) => {
      call.write(start + 'x'.repeat(1_000_000), () => resolve())
    })
    expect(await countFiles(url)).toBe(0)
    call.destroy()

    const { id } = await uploadFile(url, line('a'))
    const { data } = (await (await fetch(`${url}/v1/files`)).json()) as { readonly data: OpenAI.FileObject[] }
    expect(data.map((file) => file.id)).toEqual([id])
  },

  'openai:transport:upload-too-large': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), { batches: { maxBatchBytes: '100kb' } })

    const response = await sendFile(url, toForm('x'.repeat(300_000)))

    expect(response.status).toBe(413)
    expect(await response.json()).toMatchObject({
      error: { message: expect.stringContaining('larger than') },
    })
    expect(await countFiles(url)).toBe(0)
  },

  'openai:transport:upload-incomplete-form': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)

    for (const body of [
      part('purpose', 'batch') + part('file', line('a'), 'a.jsonl'),
      part('file', line('a'), 'a.jsonl') + part('purpose', 'batch').slice(0, -20),
      `${part('purpose', 'batch')}--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n{"cus`,
      'hello',
    ]) {
      const response = await sendForm(url, body)
      expect([body, await response.json()]).toMatchObject([
        body,
        { error: { type: 'invalid_request_error' } },
      ])
      expect(response.status).toBe(400)
    }
    expect(await countFiles(url)).toBe(0)
  },

  'openai:transport:upload-parsed-body': async (serve) => {
    const parser: InFront = (mounted) => async (req, res) => {
      await buffer(req)
      mounted(Object.assign(req, { body: { purpose: 'batch' } }), res)
    }
    const url = await serve(scriptedEngine('Hello there.'), { ...withBatches, inFront: parser })

    const response = await sendFile(url, toForm(line('a')))

    await expectError(response, 400, { message: expect.stringContaining('before the body parser') })
  },

  'openai:transport:upload-unknown-ids': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)

    for (const id of unknownIds)
      for (const response of [
        await fetch(`${url}/v1/files/${id}`),
        await fetch(`${url}/v1/files/${id}/content`),
        await remove(url, id),
      ]) {
        expect([id, response.status]).toEqual([id, 404])
        expect(await response.json()).toMatchObject({ error: { type: 'invalid_request_error' } })
      }
  },

  'openai:files:form-fields': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)
    const file = part('file', line('a'), 'a.jsonl')
    const purpose = part('purpose', 'batch')

    for (const [body, param] of [
      [file + end, 'purpose'],
      [file + part('purpose', 'fine-tune') + end, 'purpose'],
      [part('purpose', '') + file + end, 'purpose'],
      [purpose + end, 'file'],
      [end, 'file'],
      [purpose + part('file', line('a')) + end, 'file'],
      [purpose + file + part('expires_after[seconds]', '5') + end, 'expires_after[seconds]'],
      [purpose + file + part('expires_after[seconds]', 'x') + end, 'expires_after[seconds]'],
      [purpose + file + part('expires_after[anchor]', 'now') + end, 'expires_after[anchor]'],
    ] as const) {
      const response = await sendForm(url, body)
      expect([body, await response.json()]).toMatchObject([body, { error: { param } }])
      expect(response.status).toBe(400)
    }
    expect(await countFiles(url)).toBe(0)
    for (const body of [purpose + file + end, file + purpose + end])
      expect((await sendForm(url, body)).status).toBe(200)
    const more = part('expires_after[anchor]', 'created_at') + part('expires_after[seconds]', '3600')
    const { created_at, expires_at } = (await (
      await sendForm(url, purpose + more + file + end)
    ).json()) as Required<OpenAI.FileObject>
    expect(expires_at - created_at).toBe(3_600)
  },

  'openai:files:not-a-form': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)

    for (const type of ['application/json', 'multipart/form-data', 'text/plain', '']) {
      const response = await fetch(`${url}/v1/files`, {
        method: 'POST',
        headers: type ? { 'content-type': type } : {},
        body: Buffer.from('{"purpose":"batch"}'),
      })

      await expectError(response, 400, { message: expect.stringContaining('multipart/form-data') })
    }
  },

  'openai:files:names': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)

    for (const [name, stored, attached] of [
      ['../../etc/passwd', 'passwd', 'passwd'],
      ['a%22b%0d%0aset-cookie: x', 'a"b\r\nset-cookie: x', 'a_b__set-cookie__x'],
      ['<img onerror=1>.html', '<img onerror=1>.html', '_img_onerror_1_.html'],
      ['x'.repeat(600), 'x'.repeat(500), 'x'.repeat(500)],
    ] as const) {
      const response = await sendForm(url, part('purpose', 'batch') + part('file', line('a'), name) + end)
      const file = (await response.json()) as OpenAI.FileObject
      const content = await fetch(`${url}/v1/files/${file.id}/content`)

      expect([stored, name]).toContain(file.filename)
      expect(content.headers.get('set-cookie')).toBeNull()
      const disposition = String(content.headers.get('content-disposition'))
      expect(disposition).toMatch(/^attachment; filename="[\w.-]+"$/)
      if (file.filename === stored) expect(disposition).toBe(`attachment; filename="${attached}"`)
    }
  },

  'openai:files:pages': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)
    const ids: string[] = []
    for (let index = 0; index < 3; index++) {
      ids.push((await uploadFile(url, line('a'))).id)
      const uploadedAt = Date.now()
      // Files of one millisecond have no order.
      await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(uploadedAt), { interval: 1 })
    }
    const pageOf = async (query: string) => {
      const page = (await (await fetch(`${url}/v1/files${query}`)).json()) as {
        readonly data: readonly { readonly id: string }[]
        readonly has_more: boolean
      }
      return [page.data.map(({ id }) => ids.indexOf(id)), page.has_more]
    }

    expect(await pageOf('')).toEqual([[2, 1, 0], false])
    expect(await pageOf('?order=asc&limit=2')).toEqual([[0, 1], true])
    expect(await pageOf(`?order=asc&limit=2&after=${ids[1]}`)).toEqual([[2], false])
    expect(await pageOf(`?order=desc&after=${ids[1]}`)).toEqual([[0], false])
    expect(await pageOf('?purpose=batch')).toEqual([[2, 1, 0], false])
    expect(await pageOf('?purpose=fine-tune')).toEqual([[], false])
    for (const query of ['?limit=0', '?limit=10001', '?order=up'])
      expect((await fetch(`${url}/v1/files${query}`)).status).toBe(400)
  },

  'openai:files:space': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), { batches: { maxBytesPerTenant: '100kb' } })
    const content = 'x'.repeat(70_000)
    const { id } = await uploadFile(url, content)

    const refused = await sendFile(url, toForm(content))

    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(refused.status).toBe(429)
    await remove(url, id)
    expect((await sendFile(url, toForm(content))).status).toBe(200)
  },

  'openai:files:empty': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), withBatches)

    const { id, bytes } = await uploadFile(url, '')

    expect(bytes).toBe(0)
    expect(await (await fetch(`${url}/v1/files/${id}/content`)).text()).toBe('')
  },
} satisfies Partial<Record<OpenAIRequirementId, Check>>
