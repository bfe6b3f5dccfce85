/** Pulls in separate processes: some are killed, some pull the same model at once. */
import { type ChildProcess, fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { type MadeBlob, noiseBlob, SmallRegistry } from '../support/registry.ts'
import { times } from '../support/scale.ts'
import { madeModel, put } from '../support/transfers.ts'

const core = new URL('../../packages/core/dist', import.meta.url).href
const puller = fileURLToPath(new URL('puller.mjs', import.meta.url))

let registry: SmallRegistry
/** Bytes of the weights that the registry has written to sockets, received or not. */
let served: number
let onServed: () => void
beforeEach(async () => {
  registry = await SmallRegistry.start()
  served = 0
  onServed = () => {}
})
afterEach(() => registry.close())

const start = (root: string, partBytes: number): ChildProcess =>
  fork(puller, [core, root, `${registry.host}/library/tiny`, String(partBytes)], { execArgv: [] })

function offer(weights: MadeBlob): void {
  put(registry, 'library/tiny', madeModel(weights))
  const bytes = function* (from: number, to: number): Iterable<Buffer> {
    for (const piece of weights.bytes(from, to)) {
      served += piece.length
      onServed()
      yield piece
    }
  }
  registry.addBlob({ ...weights, bytes })
}

/** Completed bytes of a download, according to its state files. */
function savedBytes(root: string): number {
  const folder = join(root, 'blobs')
  const states = readdirSync(folder).filter((file) => /-partial-\d+$/.test(file))
  return states.reduce((sum, file) => sum + JSON.parse(readFileSync(join(folder, file), 'utf8')).Completed, 0)
}

async function digestOfFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of createReadStream(path)) hash.update(piece)
  return `sha256:${hash.digest('hex')}`
}

const sizeBytes = times(500_000_000, 150_000_000)
const partBytes = times(100_000_000, 50_000_000)
const kills = times(10, 3)

test(
  'a pull that is killed several times repeats at most one part per kill, and stores the right bytes',
  async () => {
    const weights = noiseBlob('killed', sizeBytes)
    offer(weights)
    const root = emptyFolder()
    const repeated: number[] = []

    for (let kill = 0; kill < kills; kill++) {
      const before = { served, saved: kill > 0 ? savedBytes(root) : 0 }
      const child = start(root, partBytes)
      // Each kill has its share of the download and happens at a random point of that share.
      const wanted = ((kill + Math.random()) / (kills + 1)) * sizeBytes - before.saved
      onServed = () => {
        if (!child.killed && served - before.served >= wanted) child.kill('SIGKILL')
      }
      expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
      repeated.push(served - before.served - (savedBytes(root) - before.saved))
    }
    onServed = () => {}
    expect(await once(start(root, partBytes), 'exit')).toEqual([0, null])

    const path = join(root, 'blobs', weights.digest.replace(':', '-'))
    expect(await digestOfFile(path)).toBe(weights.digest)
    expect(readdirSync(join(root, 'blobs')).filter((file) => file.includes('partial'))).toEqual([])
    for (const bytes of repeated) expect(bytes).toBeLessThanOrEqual(partBytes)
    // Saved bytes are not fetched again.
    expect(served).toBe(sizeBytes + repeated.reduce((sum, bytes) => sum + bytes, 0))
  },
  times(300_000, 120_000),
)

test('when two processes pull one model, each byte is downloaded once', async () => {
  const weights = noiseBlob('wanted twice', 20_000_000)
  offer(weights)
  const root = emptyFolder()

  const exits = await Promise.all(
    [start(root, 5_000_000), start(root, 5_000_000)].map((child) => once(child, 'exit')),
  )

  expect(exits).toEqual([
    [0, null],
    [0, null],
  ])
  expect(served).toBe(weights.sizeBytes)
})
