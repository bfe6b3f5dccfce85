// Compares the CPU time of one check of `rateLimit`, with limits in memory, with express-rate-limit. 10,000
// clients take turns.
import { EventEmitter } from 'node:events'
import { createRateLimiter } from '@modelmount/core/limits'
import { rateLimit } from '@modelmount/express'
import { rateLimit as theirs } from 'express-rate-limit'
import { print, printProgress } from './support/measure.mjs'

const rounds = 21
const checks = 40_000
const clients = 10_000
const target = 1.5

// The limits reject no request. Reservations are settled when the response closes.
const generous = { requestsPerMinute: 1_000_000 }
const ours = async (limits) => rateLimit(await createRateLimiter({ limits }))
const sides = {
  'express-rate-limit': theirs({
    windowMs: 60_000,
    limit: 1_000_000,
    legacyHeaders: false,
    standardHeaders: 'draft-7',
    validate: false,
  }),
  'ours, requests': await ours(generous),
  'ours, requests and tokens': await ours({ ...generous, tokensPerMinute: 1_000_000 }),
  'ours, requests, tokens and concurrent calls': await ours({
    ...generous,
    tokensPerMinute: 1_000_000,
    concurrent: 1_000,
  }),
  'express-rate-limit, again (control)': theirs({
    windowMs: 60_000,
    limit: 1_000_000,
    legacyHeaders: false,
    standardHeaders: 'draft-7',
    validate: false,
  }),
}

const addresses = Array.from({ length: clients }, (_, index) => `10.0.${index >> 8}.${index & 255}`)
/** The part of an Express request that both middlewares use. */
const requestFrom = (ip) => ({ ip, headers: {}, app: { get: () => false }, socket: { remoteAddress: ip } })
class Answer extends EventEmitter {
  headers = new Map()
  locals = {}
  destroyed = false
  headersSent = false
  setHeader(name, value) {
    this.headers.set(name.toLowerCase(), value)
  }
  append = this.setHeader
}

async function microsecondsEach(middleware) {
  globalThis.gc?.()
  const start = process.cpuUsage()
  for (let index = 0; index < checks; index++) {
    const answer = new Answer()
    await new Promise((resolve, reject) => {
      const next = (error) => (error ? reject(error) : resolve())
      middleware(requestFrom(addresses[index % clients]), answer, next)
    })
    answer.emit('close')
  }
  const { user, system } = process.cpuUsage(start)
  return (user + system) / checks
}

const samples = Object.fromEntries(Object.keys(sides).map((name) => [name, []]))
for (let round = -2; round < rounds; round++) {
  const names = Object.keys(sides)
  for (let turn = 0; turn < names.length; turn++) {
    const name = names[(round + 2 + turn) % names.length]
    const value = await microsecondsEach(sides[name])
    // The first rounds warm up.
    if (round >= 0) samples[name].push(value)
  }
  if (round >= 0) printProgress(`round ${round + 1} of ${rounds}`)
}

const sorted = (values) => [...values].sort((a, b) => a - b)
const at = (values, share) => sorted(values)[Math.floor(share * (values.length - 1))]
const base = samples['express-rate-limit']
print('|  | ratio | quartiles | per check |\n| --- | --: | --: | --: |')
for (const [name, values] of Object.entries(samples)) {
  const ratios = values.map((value, round) => value / base[round])
  const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => at(ratios, share).toFixed(2))
  print(`| ${name} | **${middle}** | ${low} – ${high} | ${at(values, 0.5).toFixed(2)} µs |`)
}
const ratio = at(
  samples['ours, requests'].map((value, round) => value / base[round]),
  0.5,
)
print(
  `\nTarget for the limit of requests: a ratio of at most ${target}, ${ratio <= target ? 'met' : 'missed'}.`,
)
process.exitCode = ratio <= target ? 0 : 1
