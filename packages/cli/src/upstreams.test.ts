import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../test/support/empty-folder.ts'
import { openUpstreams, parseUpstreams } from './upstreams.ts'

test('an upstream has a name, a URL and an API, which is that of OpenAI by default', () => {
  const given = [
    'gpu=http://10.0.0.7:8000/v1',
    'box=ollama+http://10.0.0.8:11434',
    'hosted=anthropic+https://api.example.com',
  ]

  expect(parseUpstreams(given, {})).toEqual({
    gpu: { urls: ['http://10.0.0.7:8000/v1'], api: 'openai' },
    box: { urls: ['http://10.0.0.8:11434'], api: 'ollama' },
    hosted: { urls: ['https://api.example.com'], api: 'anthropic' },
  })
})

test('several URLs are the replicas of a fleet', async () => {
  const engines = await openUpstreams(['gpu=http://a.example,http://b.example:8000/v1'], {})
  const { gpu } = engines
  onTestFinished(() => gpu?.close())

  expect(parseUpstreams(['gpu=http://a.example,http://b.example:8000/v1'], {})).toEqual({
    gpu: { urls: ['http://a.example', 'http://b.example:8000/v1'], api: 'openai' },
  })
  expect(gpu).toHaveProperty('replicas')
})

test('keys are read from the environment, or from the files that it names', () => {
  const file = join(emptyFolder(), 'key')
  writeFileSync(file, 'sk-file\n')
  const environment = {
    MODELMOUNT_UPSTREAM_GPU_1_KEY: ' sk-gpu ',
    MODELMOUNT_UPSTREAM_BOX_KEY_FILE: file,
    MODELMOUNT_UPSTREAM_OTHER_KEY: 'sk-other',
  }

  const upstreams = parseUpstreams(
    ['gpu-1=http://a.example', 'box=http://b.example', 'plain=http://c.example'],
    environment,
  )

  expect(Object.values(upstreams).map(({ apiKey }) => apiKey)).toEqual(['sk-gpu', 'sk-file', undefined])
})

test.each([
  [['http://10.0.0.7:8000'], {}, '--upstream: Expected NAME=URL'],
  [['gpu=ftp://10.0.0.7'], {}, '--upstream: Expected NAME=URL'],
  [['gpu=vllm+http://10.0.0.7'], {}, '--upstream: Expected NAME=URL'],
  [['gpu=http://a.example,b.example'], {}, '--upstream: Expected NAME=URL'],
  [['gpu=http://a.example,'], {}, '--upstream: Expected NAME=URL'],
  [
    ['a.b=http://a.example', 'a-b=http://b.example'],
    {},
    "'a.b' and 'a-b' both have MODELMOUNT_UPSTREAM_A_B_KEY",
  ],
  [['gpu=http://a.example', 'gpu=http://b.example'], {}, "'gpu' and 'gpu' both have"],
  [
    ['gpu=http://a.example'],
    { MODELMOUNT_UPSTREAM_GPU_KEY: 'a', MODELMOUNT_UPSTREAM_GPU_KEY_FILE: 'b' },
    '$MODELMOUNT_UPSTREAM_GPU_KEY and $MODELMOUNT_UPSTREAM_GPU_KEY_FILE exclude each other',
  ],
  [
    ['gpu=http://a.example'],
    { MODELMOUNT_UPSTREAM_GPU_KEY_FILE: '/nowhere/key' },
    '$MODELMOUNT_UPSTREAM_GPU_KEY_FILE: cannot read /nowhere/key (ENOENT).',
  ],
])('--upstream %j with the environment %j is rejected', (given, environment, message) => {
  expect(() => parseUpstreams(given, environment)).toThrow(message)
})

test('an error names the upstream, and no password', async () => {
  const opened = openUpstreams(['gpu=http://ann:secret@10.0.0.7'], {})

  await expect(opened).rejects.toThrow(/^--upstream gpu: (?!.*secret)/)
})

test('each upstream is an engine', async () => {
  const engines = await openUpstreams(['gpu=http://10.0.0.7:8000', 'box=ollama+http://10.0.0.8:11434'], {})

  expect(Object.keys(engines)).toEqual(['gpu', 'box'])
  for (const engine of Object.values(engines)) await engine.close()
})
