/** Builds and starts the server as `npm start` does, with the built-in model, and ends it with SIGTERM. */
import { type ChildProcess, execSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

const token = 'token-of-grace-00'
const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
let server: ChildProcess
let url: string

beforeAll(async () => {
  execSync('npm run build', { cwd: __dirname })
  server = spawn(process.execPath, ['dist/main.js'], {
    cwd: __dirname,
    env: {
      ...process.env,
      NODE_ENV: 'production',
      PORT: '0',
      ADMIT_FOR: '0s',
      API_TOKENS: `${token}:grace:paid`,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  url = await new Promise((resolve) => {
    createInterface({ input: server.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      if (line.startsWith('Listening on ')) resolve(line.replace('Listening on ', ''))
    })
  })
}, 120_000)

afterAll(() => void server.kill('SIGKILL'))

test('SIGTERM ends the server when its running answers have ended', async () => {
  const exit = once(server, 'exit')
  const response = await fetch(`${url}/llm/v1/chat/completions`, {
    method: 'POST',
    headers,
    body: JSON.stringify({
      model: 'tiny',
      stream: true,
      messages: [{ role: 'user', content: 'Tell me a story.' }],
    }),
  })

  server.kill('SIGTERM')

  expect(await response.text()).toContain('[DONE]')
  expect(await exit).toEqual([null, 'SIGTERM']) // Nest ends the process with the signal.
}, 60_000)
