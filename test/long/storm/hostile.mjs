// The hostile tenants of the storm, in a child process, so that their work is not that of the polite ones. Each
// function is one tenant: it makes calls of its kind until the process ends. Calls follow each other without
// regard to errors, several at a time. Reports the outcome of each call to the parent process.
import { connect } from 'node:net'
import { setPriority } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'

const [url, socketPath, ...kinds] = process.argv.slice(2)
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

/**
 * Sends a request, and passes the response to `read`. Reports the error, or else `did`: what the tenant has done.
 * Resolves with whether the request succeeded.
 */
async function send(kind, name, path, body, did, { read = (response) => response.text(), signal } = {}) {
  try {
    const headers = { 'content-type': 'application/json', 'x-tenant': name }
    const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body), signal })
    const retryAfter = response.headers.has('retry-after')
    const text = await read(response)
    report(kind, response.ok ? { did } : { status: response.status, retryAfter, body: text })
    return response.ok
  } catch (error) {
    const hasLeft = signal?.aborted === true
    report(kind, hasLeft ? { did: 'left before the first token' } : { closed: String(error) })
    return hasLeft
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

/** Opens a connection and sends the head of a request, and its body if there is one. */
function openRequest(address, name, length, body = '') {
  const socket = connect(address)
  socket.on('error', () => {}).on('end', () => socket.destroy())
  const head = [
    `POST ${chatPath} HTTP/1.1`,
    'host: localhost',
    `x-tenant: ${name}`,
    `content-length: ${length}`,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  return socket
}

/** Calls `work` at intervals until the connection has closed, but not for longer than `patienceMs`. */
async function useSlowly(socket, intervalMs, work) {
  const until = performance.now() + patienceMs
  while (!socket.destroyed && performance.now() < until) {
    work()
    await pause(intervalMs)
  }
}

/** Reports the error of a response, or `did`. */
function reportResponse(kind, text, did) {
  const status = Number(text.slice(9, 12))
  const retryAfter = /^retry-after:/im.test(text)
  report(kind, status >= 400 ? { status, retryAfter, body: text } : { did })
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
  endless: (name) =>
    loops(4, () => {
      const read = async (response) => {
        if (!response.ok) return response.text()
        let events = 0
        for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
          events += piece.split('\n\n').length - 1
          if (events >= 250) report('endless', { did: 'streamed 250 events' })
          events %= 250
        }
      }
      const body = { ...story, max_tokens: 100_000 }
      return send('endless', name, chatPath, body, 'filled the context', { read })
    }),

  /**
   * Sixteen streams with large events. Half of them read a few bytes per second, the others read nothing after
   * the headers.
   */
  slowReader: (name) =>
    loops(16, async (index) => {
      const mayRead = index % 2 === 0
      const body = JSON.stringify({ ...story, max_tokens: 100_000, logprobs: true, top_logprobs: 20 })
      const socket = openRequest({ path: socketPath }, name, body.length, body)
      let text = ''
      await useSlowly(socket, 500, () => {
        if (mayRead || text === '') text += socket.read(32) ?? ''
      })
      // Only a socket that is read notices that the server has closed it.
      socket.on('data', (rest) => {
        text += rest
      })
      await pause(1_000)
      const wasSent = text.includes('"content":"')
      const isWhole = text.includes('data: [DONE]')
      const did = mayRead ? 'read slowly' : 'stopped reading'
      const end = isWhole ? ', got a whole answer' : socket.destroyed ? ', was disconnected' : ''
      reportResponse('slow reader', text, wasSent ? did + end : 'waited')
      socket.destroy()
      return true
    }),

  /** Sixteen requests that send a body of 1 MB with 100 bytes per second. */
  slowWriter: (name) =>
    loops(16, async () => {
      const socket = openRequest({ host: '127.0.0.1', port: new URL(url).port }, name, 1_000_000)
      let text = ''
      await useSlowly(socket, 1_000, () => {
        text += socket.read() ?? ''
        if (text === '') socket.write(' '.repeat(100))
        else socket.destroy()
      })
      const did = socket.destroyed ? 'was disconnected' : 'sent slowly'
      reportResponse('slow writer', text, did)
      socket.destroy()
      return true
    }),

  /** Schemas that are costly to compile. */
  hostileSchema: (name) =>
    loops(2, (index) => {
      const schema = hostileSchemas[index % hostileSchemas.length]
      const format = { type: 'json_schema', json_schema: { name: 'x', schema } }
      const body = { model: 'tiny', messages: say('Hello'), max_tokens: 20, response_format: format }
      return send('hostile schema', name, chatPath, body, 'answered')
    }),

  /** Long and odd texts, to answer and to count. */
  hostileText: (name) =>
    loops(4, (index) => {
      const messages = say(hostileTexts[index % hostileTexts.length])
      const isCounted = index % 3 !== 0
      const path = isCounted ? '/v1/messages/count_tokens' : chatPath
      return send('hostile text', name, path, { model: 'tiny', messages }, isCounted ? 'counted' : 'answered')
    }),

  /** Another context size and keep-alive in each call. */
  contextChanger: (name) =>
    loops(4, (index) => {
      const options = { num_ctx: 256 + 256 * (index % 8), num_batch: 64 + (index % 3), num_predict: 5 }
      const body = { model: 'tiny', messages: say('Hello'), stream: false, keep_alive: 0, options }
      return send('context changer', name, '/api/chat', body, 'answered')
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
      const { signal } = leave
      await send('leaver', name, chatPath, { ...story, messages }, 'left during the answer', { read, signal })
      await pause(20)
      return true
    }),
}

for (const [index, kind] of kinds.entries()) tenants[kind](`hostile-${index}`)
process.once('disconnect', () => process.exit())
