// The hostile tenants of the storm, in a child process, so that their work is not that of the polite ones. Each
// function is one tenant: it makes calls of its kind until the process ends. Calls follow each other without
// regard to errors, several at a time. Reports the outcome of each call to the parent process.
import { connect } from 'node:net'
import { setPriority } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'

const [url, ...kinds] = process.argv.slice(2)
/** How long a slow client keeps a connection, in milliseconds. */
const patienceMs = 90_000
/** Pause after a failed call, in milliseconds. Hostile tenants ignore `retry-after`. */
const retryMs = 200
// Hostile clients have machines of their own.
setPriority(19)

const say = (content) => [{ role: 'user', content }]
const chatPath = '/v1/chat/completions'
const story = { model: 'tiny', messages: say('Tell me a story.'), stream: true, ignore_eos: true }
const times = (count, make) => Array.from({ length: count }, (_, index) => make(index))
const report = (kind, outcome) => process.send({ kind, outcome })

/** Sends a request, and passes the response to `read`. Resolves with whether it succeeded. */
async function send(kind, name, path, body, { read = (response) => response.text(), signal } = {}) {
  try {
    const headers = { 'content-type': 'application/json', 'x-tenant': name }
    const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body), signal })
    const retryAfter = response.headers.has('retry-after')
    const text = await read(response)
    report(kind, { status: response.status, retryAfter, body: response.ok ? '' : text })
    return response.ok
  } catch (error) {
    if (!signal?.aborted) report(kind, { closed: String(error) })
    return signal?.aborted === true
  }
}

/** Calls `work` again and again, `count` at a time. */
function loops(count, work) {
  let next = 0
  const loop = async () => {
    for (;;) if (!(await work(next++))) await pause(retryMs)
  }
  return Promise.all(times(count, loop))
}

/** Opens a connection, sends a request, and calls `work` at intervals until the connection has closed. */
async function useSocket(kind, name, { length, body = '', intervalMs }, work) {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  socket.on('error', () => {}).on('end', () => socket.destroy())
  const head = [
    `POST ${chatPath} HTTP/1.1`,
    'host: localhost',
    `x-tenant: ${name}`,
    `content-length: ${length}`,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  const until = performance.now() + patienceMs
  let text = ''
  while (!socket.destroyed && performance.now() < until) {
    text += work(socket, text) ?? ''
    await pause(intervalMs)
  }
  socket.destroy()
  const status = Number(text.slice(9, 12))
  if (text) report(kind, { status, retryAfter: /^retry-after:/im.test(text), body: status < 400 ? '' : text })
  return true
}

const hostileSchemas = [
  { type: 'object', properties: Object.fromEntries(times(10_000, (i) => [`p${i}`, { type: 'string' }])) },
  { type: 'string', pattern: '^(a|b)*a(a|b){18}$' },
  {
    type: 'object',
    properties: Object.fromEntries(
      times(200, (i) => [`p${i}`, { type: 'string', pattern: `^[一-鿿]{0,${200 + i}}$` }]),
    ),
  },
  JSON.parse(`${'{"type":"array","items":'.repeat(200)}{}${'}'.repeat(200)}`),
]
const hostileTexts = [
  'a'.repeat(30_000),
  'word '.repeat(40_000),
  '\u{1f600}'.repeat(20_000),
  '('.repeat(50_000) + '\n'.repeat(50_000),
]

const tenants = {
  /** Four answers at a time that end only with the context. */
  endless: (name) => loops(4, () => send('endless', name, chatPath, { ...story, max_tokens: 100_000 })),

  /** Sixteen streams. Half of them read a few bytes per second, the others read nothing after the headers. */
  slowReader: (name) =>
    loops(16, (index) => {
      const body = JSON.stringify({ ...story, max_tokens: 1_000 })
      const mayRead = (text) => index % 2 === 0 || text === ''
      return useSocket('slow reader', name, { length: body.length, body, intervalMs: 500 }, (socket, text) =>
        mayRead(text) ? socket.read(32) : '',
      )
    }),

  /** Sixteen requests that send a body of 1 MB with 100 bytes per second. */
  slowWriter: (name) =>
    loops(16, () =>
      useSocket('slow writer', name, { length: 1_000_000, intervalMs: 1_000 }, (socket) => {
        const answer = socket.read()
        if (answer) socket.destroy()
        else socket.write(' '.repeat(100))
        return answer
      }),
    ),

  /** Schemas that are costly to compile. */
  hostileSchema: (name) =>
    loops(2, (index) => {
      const schema = hostileSchemas[index % hostileSchemas.length]
      const format = { type: 'json_schema', json_schema: { name: 'x', schema } }
      const body = { model: 'tiny', messages: say('Hello'), max_tokens: 20, response_format: format }
      return send('hostile schema', name, chatPath, body)
    }),

  /** Long and odd texts, to answer and to count. */
  hostileText: (name) =>
    loops(4, (index) => {
      const messages = say(hostileTexts[index % hostileTexts.length])
      const path = index % 3 === 0 ? chatPath : '/v1/messages/count_tokens'
      return send('hostile text', name, path, { model: 'tiny', messages })
    }),

  /** Another context size and keep-alive in each call. */
  contextChanger: (name) =>
    loops(4, (index) => {
      const options = { num_ctx: 256 + 256 * (index % 8), num_batch: 64 + (index % 3), num_predict: 5 }
      const body = { model: 'tiny', messages: say('Hello'), stream: false, keep_alive: 0, options }
      return send('context changer', name, '/api/chat', body)
    }),

  /** Eight streams at a time that the client leaves, half of them before the first token. */
  leaver: (name) =>
    loops(8, async (index) => {
      const leave = new AbortController()
      if (index % 2 === 0) setTimeout(() => leave.abort(), Math.random() * 100)
      const read = async (response) => {
        if (!response.ok) return response.text()
        await response.body.getReader().read()
        leave.abort()
      }
      const messages = say(`Box ${index} is red. Box ${index * 7} is blue. Hello, what can you do?`)
      await send('leaver', name, chatPath, { ...story, messages }, { read, signal: leave.signal })
      await pause(20)
      return true
    }),
}

for (const [index, kind] of kinds.entries()) tenants[kind](`hostile-${index}`)
process.once('disconnect', () => process.exit())
