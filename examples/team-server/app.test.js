/** Checks that the files fit together: Compose, the image, nginx, Open WebUI, and the command of package.json. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLlm } from '@modelmount/core'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

const read = (file) => readFileSync(join(import.meta.dirname, file), 'utf8')
const readVariables = (file) =>
  Object.fromEntries(
    Array.from(read(file).matchAll(/^([A-Z_]+)=(.*)$/gm), ([, name, value]) => [name, value]),
  )

const { services, volumes } = parse(read('compose.yaml'))
const settings = readVariables('open-webui.env')
const nginx = read('nginx.conf')
const image = read('Dockerfile')
const command = JSON.parse(/^CMD (\[.*\])$/m.exec(image)[1])
const port = /^EXPOSE (\d+)$/m.exec(image)[1]

test('the image runs the command of `npm start`, on all addresses of its network', () => {
  const { scripts } = JSON.parse(read('package.json'))
  const [, script, ...args] = command

  expect(script).toBe('node_modules/modelmount/bin/modelmount.js')
  expect(['modelmount', ...args].join(' ')).toBe(`${scripts.start} --host 0.0.0.0 --port ${port}`)
})

test('nginx and Open WebUI ask the service and the port of the image', () => {
  const upstreams = Array.from(nginx.matchAll(/^ {4}server ([\w-]+):(\d+);$/gm), ([, host, at]) => [host, at])

  expect(upstreams).toEqual([
    ['modelmount', port],
    ['open-webui', '8080'],
  ])
  expect(upstreams.every(([host]) => host in services)).toBe(true)
  expect(settings.OPENAI_API_BASE_URL).toBe(`http://modelmount:${port}/v1`)
  expect(new URL(settings.WEBUI_URL).host).toBe(/server_name (chat\.\S+);/.exec(nginx)[1])
})

test('only nginx has a port outside, and streams pass it unbuffered', () => {
  const published = Object.entries(services).filter(([, { ports }]) => ports)

  expect(published.map(([name]) => name)).toEqual(['nginx'])
  expect(nginx.match(/proxy_buffering off;/g)).toHaveLength(2)
  expect(nginx).toMatch(/location ~ \^\/\(livez\|readyz\|startupz\)\$ \{\n\s+deny all;/)
})

test('what a container writes is in a volume, and its user may write there', () => {
  const mounted = Object.values(services)
    .flatMap((service) => service.volumes)
    .filter((volume) => !volume.startsWith('./'))
    .map((volume) => volume.split(':'))

  expect(mounted.map(([name]) => name).sort()).toEqual(Object.keys(volumes).sort())
  expect(services.modelmount).toMatchObject({ read_only: true, cap_drop: ['ALL'] })
  expect(image).toContain('install -d -o node -g node /models data')
  expect(mounted.filter(([name]) => name === 'data' || name === 'models')).toEqual([
    ['data', '/app/data'],
    ['models', /OLLAMA_MODELS=(\S+)/.exec(image)[1]],
  ])
  expect(image).toContain('WORKDIR /app')
})

test('the secrets are in .env only, and .env is neither in git nor in the image', () => {
  const needed = Array.from(read('compose.yaml').matchAll(/\$\{([A-Z_]+):\?/g), ([, name]) => name)

  expect(Object.keys(readVariables('.env.example')).sort()).toEqual(needed.sort())
  expect(Object.values(readVariables('.env.example'))).toEqual(['', ''])
  expect(Object.keys(settings).filter((name) => /KEY|SECRET/.test(name))).toEqual([])
  for (const file of ['.gitignore', '.dockerignore']) expect(read(file)).toMatch(/^\.env$/m)
})

test('the time to stop is longer than the time of running answers and 5 s', () => {
  const drain = Number(command[command.indexOf('--drain') + 1])

  expect(Number.parseInt(services.modelmount.stop_grace_period, 10)).toBeGreaterThan(drain + 5)
})

test('the configuration has options of Modelmount only', async () => {
  const options = JSON.parse(read('modelmount.json'))
  const tierOfPage = /--tier (\w+)/.exec(read('.env.example'))[1]

  // A wrong option, name or value is an error.
  const llm = await createLlm({ ...options, auth: 'anonymous' })
  await llm.close()
  expect(Object.keys(options.tiers)).toContain(tierOfPage)
})
