// The contestants: ways to serve the same streamed answer. `pace` is the pause between two tokens:
// `none`, a `turn` of the event loop, or a `timer` of 50 to 100 ms.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createLlm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { registerMetrics } from '@modelmount/core/metrics'
import { scriptedEngine } from '@modelmount/core/testing'
import { registerTracing } from '@modelmount/core/tracing'
import { llmRouter } from '@modelmount/express'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import express from 'express'
import { Registry } from 'prom-client'

const words = [' the', ' model', ' answers', ',', ' and', ' "quotes"', ' cost', ' an', ' escape', '.\n']
const delays = Array.from({ length: 51 }, (_, index) => 50 + index)

/** Each function returns a `RequestListener`. */
export const contestants = {
  /** A hand-written handler with the least possible work. Its tokens are in an array. */
  bare: ({ tokens, pace }) => {
    const texts = textsOf(tokens)
    const delayMs = turns(delays)
    return serveByHand((res, frames) => {
      let index = 0
      const finish = () => res.end(frames.end())
      const write = () => res.write(frames.text(texts[index++]))
      res.write(frames.start())

      if (pace === 'timer') {
        const timer = setInterval(() => (index < texts.length ? write() : finish()), delayMs())
        res.once('close', () => clearInterval(timer))
        return
      }
      const step = () => {
        while (index < texts.length) {
          if (!write()) return res.once('drain', step)
          if (pace === 'turn') return setImmediate(step)
        }
        finish()
      }
      step()
    })
  },

  /** The hand-written handler with tokens from our scripted engine, to separate the cost of the engine. */
  'bare + engine': (script) => {
    const engine = engineFor(script)
    return serveByHand(async (res, frames, request) => {
      const disconnected = new AbortController()
      res.once('close', () => disconnected.abort())
      const engineRequest = {
        model: request.model,
        input: { kind: 'chat', messages: request.messages },
        sampling: {},
      }
      for await (const event of engine.generate(engineRequest, { signal: disconnected.signal })) {
        if (event.type === 'end') res.end(frames.end())
        else if (!res.write(event.type === 'start' ? frames.start() : frames.text(event.text)))
          await once(res, 'drain', { signal: disconnected.signal }).catch(() => {})
      }
    })
  },

  node: async (script) => toNodeHandler(routesFor(), await createLlm({ engine: engineFor(script) })),

  express: async (script) => express().use(llmRouter(await createLlm({ engine: engineFor(script) }))),

  'express, metrics': (script) => observed(script, [countCalls]),
  'express, traces': (script) => observed(script, [traceCalls]),
  'express, observed': (script) => observed(script, [countCalls, traceCalls]),
}

/** @param subscribers functions that subscribe to the events of an `Llm` */
async function observed(script, subscribers) {
  const llm = await createLlm({ engine: engineFor(script) })
  for (const subscribe of subscribers) subscribe(llm, script)
  return express().use(llmRouter(llm))
}

/** Counts, and renders all metrics once a second, which is more often than any Prometheus asks. */
function countCalls(llm) {
  const registry = new Registry()
  registerMetrics(llm, registry)
  setInterval(() => registry.metrics(), 1_000).unref()
}

/** Samples each call, and sends its spans by OTLP to `traces`, a server that drops them. */
function traceCalls(llm, { traces }) {
  const processor = new BatchSpanProcessor(new OTLPTraceExporter({ url: traces }))
  registerTracing(llm, { tracerProvider: new NodeTracerProvider({ spanProcessors: [processor] }) })
}

export const listen = async (listener) => {
  // A round may take longer than Node's default of 5 s, and the client keeps its connections.
  const server = createServer({ keepAliveTimeout: 600_000 }, listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server.address().port
}

function engineFor({ tokens, pace }) {
  const script = textsOf(tokens)
  if (pace === 'none') return scriptedEngine(script)
  if (pace === 'turn') return yielding(scriptedEngine(script))
  const engine = turns(delays.map((delayMs) => scriptedEngine(script, { delayMs })))
  return { ...engine(), generate: (request, call) => engine().generate(request, call) }
}

/** Waits for a turn of the event loop before each event. A plain iterator costs less than a generator. */
const yielding = (engine) => ({
  ...engine,
  generate(request, call) {
    const events = engine.generate(request, call)
    const next = (resolve) => resolve(events.next())
    return {
      next: () => new Promise((resolve) => setImmediate(next, resolve)),
      return: () => events.return(),
      [Symbol.asyncIterator]() {
        return this
      },
    }
  },
})

/**
 * Reads the body, sends the headers, and calls `answer` with a renderer whose frames equal ours byte for
 * byte.
 */
const serveByHand = (answer) => (req, res) => {
  let body = ''
  req.setEncoding('utf8')
  req.on('data', (piece) => {
    body += piece
  })
  req.on('end', () => {
    const request = JSON.parse(body)
    res.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'x-request-id': `req_${id()}`,
    })
    answer(res, framesFor(request), request)
  })
}

function framesFor({ model }) {
  const head = `data: ${JSON.stringify({
    id: `chatcmpl-${id()}`,
    object: 'chat.completion.chunk',
    created: Math.floor(Date.now() / 1000),
    model,
    system_fingerprint: 'fp_scripted',
  }).slice(0, -1)},"choices":[{"index":0,"delta":{`
  const tail = '},"logprobs":null,"finish_reason":null}]}\n\n'
  return {
    start: () => `${head}"role":"assistant","content":"","refusal":null${tail}`,
    text: (text) => `${head}"content":${JSON.stringify(text)}${tail}`,
    end: () => `${head}},"logprobs":null,"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`,
  }
}

const id = () => randomBytes(16).toString('base64url').slice(1)

const textsOf = (count) => Array.from({ length: count }, (_, index) => words[index % words.length])

/** Returns the items in turn, and starts again after the last one. */
function turns(items) {
  let index = 0
  return () => items[index++ % items.length]
}
