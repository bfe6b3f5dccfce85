/** `create` extracted an archive, and entries with `../` or an absolute path were written where they named. */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { serveScripted } from '../../support/served.ts'

const around = emptyFolder()

/** A zip archive with one stored, empty entry. */
function zip(name: string): Buffer {
  const local = Buffer.alloc(30)
  local.writeUInt32LE(0x04034b50)
  local.writeUInt16LE(name.length, 26)
  const central = Buffer.alloc(46)
  central.writeUInt32LE(0x02014b50)
  central.writeUInt16LE(name.length, 28)
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50)
  end.writeUInt16LE(1, 8)
  end.writeUInt16LE(1, 10)
  end.writeUInt32LE(central.length + name.length, 12)
  end.writeUInt32LE(local.length + name.length, 16)
  return Buffer.concat([local, Buffer.from(name), central, Buffer.from(name), end])
}

/** A tar archive with one entry: an empty file, or a symbolic link. */
function tar(name: string, link = ''): Buffer {
  const header = Buffer.alloc(512)
  header.write(name, 0)
  header.write('0000644\0', 100)
  header.write('00000000000\0', 124)
  header.write(link === '' ? '0' : '2', 156)
  header.write(link, 157)
  header.write('ustar\x0000', 257)
  header.fill(' ', 148, 156)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return Buffer.concat([header, Buffer.alloc(1_024)])
}

test.each<[what: string, file: string, bytes: Buffer]>([
  ['a zip that climbs', 'model.zip', zip('../../climbed')],
  ['a zip with an absolute path', 'model.gguf', zip(join(around, 'absolute'))],
  ['a tar that climbs', 'model.tar', tar('../../climbed')],
  ['a tar with an absolute path', 'model.safetensors', tar(join(around, 'absolute'))],
  ['a tar with a symbolic link', 'model.gguf', tar('model', around)],
])('create rejects %s and extracts nothing', async (what, file, bytes) => {
  const models = join(around, what.replaceAll(' ', '-'))
  mkdirSync(models)
  const { url, post } = await serveScripted(models, { scopes: ['inference', 'models'] })
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
  const upload = await fetch(`${url}/api/blobs/${digest}`, { method: 'POST', body: new Uint8Array(bytes) })
  const before = readdirSync(around, { recursive: true })

  const response = await post('/api/create', { model: 'packed', files: { [file]: digest }, stream: false })

  expect(upload.status).toBe(201)
  expect([response.status, await response.json()]).toEqual([400, { error: expect.stringMatching(/./) }])
  expect(readdirSync(around, { recursive: true })).toEqual(before)
})
