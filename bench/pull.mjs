// Compares a pull from a registry on this machine with `curl | tee FILE | sha256sum` of the same blob.
import { execFileSync, fork } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startDockerRegistry } from '../test/support/docker-registry.mjs'
import { IdleGuard } from './support/idle-guard.mjs'
import { describeMachine, median, print, printTable, quartiles } from './support/measure.mjs'
import { takeRounds } from './support/rounds.mjs'

const { values: options } = parseArgs({
  options: { megabytes: { type: 'string', default: '500' }, rounds: { type: 'string', default: '7' } },
})
const megabytes = Number(options.megabytes)
const child = fileURLToPath(new URL('support/pull-once.mjs', import.meta.url))
const peaks = {}

const registry = await startDockerRegistry()
try {
  const large = await publish('large', megabytes)
  const small = await publish('small', megabytes / 10)
  const sides = {
    ours: { seconds: () => pull(large) },
    theirs: { seconds: () => pipe(large) },
    control: { seconds: () => pull(large) },
  }
  const guard = new IdleGuard([registry.processId])
  print(`## A blob of ${megabytes} MB, from docker-registry on this machine\n`)
  await describeMachine()
  if (!guard.isOn) print('WARNING: the idle guard is off.')
  print('')
  // Warms up the page cache: the first read comes from the disk.
  await pipe(large)
  await pull(small)
  const measures = { [large.name]: { run: (side) => side.seconds() } }
  const taken = (await takeRounds(Number(options.rounds), measures, sides, guard))[large.name]

  const ratios = taken.map(({ ours, theirs }) => theirs / ours)
  const controls = taken.map(({ ours, control }) => control / ours)
  const rate = (side) => `${Math.round(megabytes / median(taken.map((sample) => sample[side])))} MB/s`
  printTable(
    ['', 'ours', 'curl, tee and sha256sum', 'ratio', 'quartiles', 'control'],
    [
      [
        'throughput',
        rate('ours'),
        rate('theirs'),
        `**${median(ratios).toFixed(2)}**`,
        quartiles(ratios)
          .map((ratio) => ratio.toFixed(2))
          .join(' – '),
        median(controls).toFixed(2),
      ],
    ],
  )
  const peak = ({ name }) => `${Math.round(Math.max(...peaks[name]))} MB`
  printTable(
    ['peak memory of the pulling process', ''],
    [
      [`${megabytes / 10} MB`, peak(small)],
      [`${megabytes} MB`, peak(large)],
    ],
  )
} finally {
  await registry.close()
}

/** Returns the seconds from the first request until the manifest is on disk. */
async function pull({ name }) {
  const process = fork(child, [`${registry.host}/library/${name}`])
  const [{ ms, peakMb }] = await once(process, 'message')
  await once(process, 'exit')
  peaks[name] = [...(peaks[name] ?? []), peakMb]
  return ms / 1_000
}

async function pipe({ url, digest }) {
  const folder = mkdtempSync(join(tmpdir(), 'pull-'))
  const startedAt = performance.now()
  const script = `curl --silent --fail '${url}' | tee '${join(folder, 'file')}' | sha256sum`
  const sum = execFileSync('sh', ['-c', script], { encoding: 'utf8' })
  const seconds = (performance.now() - startedAt) / 1_000
  rmSync(folder, { recursive: true })
  if (!sum.startsWith(digest.slice('sha256:'.length))) throw new Error('curl got other bytes.')
  return seconds
}

/** Uploads a model of random bytes. */
async function publish(name, size) {
  const [weights, config] = [randomBytes(size * 1e6), Buffer.from('{}')]
  const layer = (mediaType, bytes) => ({
    mediaType,
    digest: `sha256:${createHash('sha256').update(bytes).digest('hex')}`,
    size: bytes.length,
  })
  const manifest = {
    schemaVersion: 2,
    mediaType: 'application/vnd.docker.distribution.manifest.v2+json',
    config: layer('application/vnd.docker.container.image.v1+json', config),
    layers: [layer('application/vnd.ollama.image.model', weights)],
  }
  const { digest } = manifest.layers[0]
  const base = `${registry.url}/v2/library/${name}`
  await upload(base, weights, digest)
  await upload(base, config, manifest.config.digest)
  const headers = { 'content-type': manifest.mediaType }
  await expectOk(
    fetch(`${base}/manifests/latest`, { method: 'PUT', body: JSON.stringify(manifest), headers }),
  )
  return { name, digest, url: `${base}/blobs/${digest}` }
}

async function upload(base, bytes, digest) {
  const started = await expectOk(fetch(`${base}/blobs/uploads/`, { method: 'POST' }))
  const place = new URL(started.headers.get('location'))
  place.searchParams.set('digest', digest)
  await expectOk(fetch(place, { method: 'PUT', body: bytes }))
}

async function expectOk(responding) {
  const response = await responding
  if (!response.ok) throw new Error(`${response.url}: ${response.status} ${await response.text()}`)
  return response
}
