/** Runs the server as `npm start` does, without containers: keys, answers, nginx if it is installed, and SIGTERM. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'

const cwd = import.meta.dirname
const program = join(
  dirname(fileURLToPath(import.meta.resolve('modelmount/package.json'))),
  'bin/modelmount.js',
)
const nginx = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
  .map((folder) => join(folder, 'nginx'))
  .find((path) => existsSync(path))
let data
let server
let url
let headers

const run = (...args) => execFileSync(process.execPath, [program, ...args], { cwd, encoding: 'utf8' })

beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), 'team-'))
  const { scripts } = JSON.parse(await readFile(join(cwd, 'package.json'), 'utf8'))
  const args = scripts.start.replace('--data data', `--data ${data}`).split(' ').slice(1)
  const created = run('keys', 'create', 'open-webui', '--data', data, '--models', 'tiny')
  const secret = /sk-mm-\S+/.exec(created)[0]
  headers = { authorization: `Bearer ${secret}`, host: 'llm.example.com' }
  server = spawn(process.execPath, [program, ...args, '--metrics', '--port', '0'], {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  server.stderr.resume()
  url = await new Promise((resolve) => {
    createInterface({ input: server.stdout }).on('line', (line) => {
      const address = /http:\/\/127\.0\.0\.1:\d+/.exec(line)
      if (address) resolve(address[0])
    })
  })
}, 60_000)

afterAll(async () => {
  server.kill('SIGKILL')
  await rm(data, { recursive: true, force: true })
})

const question = { model: 'tiny', stream: true, messages: [{ role: 'user', content: 'Tell me a story.' }] }

const chat = (base, init = {}) =>
  fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers,
    body: JSON.stringify(question),
    ...init,
  })

test('the server answers keys only, and lists the models that Open WebUI shows', async () => {
  const models = await fetch(`${url}/v1/models`, { headers })

  expect((await models.json()).data.map(({ id }) => id)).toEqual(['tiny:latest'])
  expect((await chat(url, { headers: {} })).status).toBe(401)
  expect((await fetch(`${url}/readyz`)).status).toBe(200)
})

test('the model stops when a client disconnects', async () => {
  const admin = /sk-mm-\S+/.exec(run('keys', 'create', 'admin', '--data', data, '--scopes', 'admin:read'))[0]
  const client = new AbortController()
  const endless = { ignore_eos: true, max_tokens: 4_000 }
  const { body } = await chat(url, {
    signal: client.signal,
    body: JSON.stringify({ ...question, ...endless }),
  })
  await body.getReader().read()

  client.abort()

  const metrics = async () => {
    const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${admin}` } })
    return await response.text()
  }
  await expect.poll(metrics, { timeout: 5_000 }).toMatch(/^modelmount_calls_total\{.*aborted.*\} 1$/m)
}, 20_000)

test.each(nginx ? [nginx] : [])(
  'nginx takes the configuration, and passes streams on: %s',
  async (path) => {
    const port = await freePort()
    const configuration = (await readFile(join(cwd, 'nginx.conf'), 'utf8'))
      .replace('modelmount:11434', new URL(url).host)
      .replace('open-webui:8080', new URL(url).host)
      .replaceAll('listen 80;', `listen 127.0.0.1:${port};`)
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${data}/${name};`,
    )
    await writeFile(
      join(data, 'nginx.conf'),
      `daemon off; pid ${data}/pid; error_log ${data}/errors; events {}
     http { access_log off; ${temporary.join(' ')} ${configuration} }`,
    )
    const proxy = spawn(path, ['-c', join(data, 'nginx.conf'), '-e', join(data, 'errors')], {
      stdio: 'ignore',
    })
    const base = `http://127.0.0.1:${port}`
    await expect
      .poll(
        () =>
          fetch(base).then(
            () => true,
            () => false,
          ),
        { timeout: 5_000 },
      )
      .toBe(true)

    expect(await (await chat(base)).text()).toContain('[DONE]')
    proxy.kill('SIGTERM')
    await once(proxy, 'exit')
  },
  30_000,
)

test('SIGTERM ends the server when its running answers have ended', async () => {
  const exit = once(server, 'exit')
  const response = await chat(url)

  server.kill('SIGTERM')

  expect(await response.text()).toContain('[DONE]')
  expect(await exit).toEqual([0, null])
}, 60_000)

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  await once(probe, 'close')
  return port
}
