/**
 * The chat templates of llama.cpp's release in node-llama-cpp, and the requests that are rendered with them.
 * The templates are not in this repository, since each has the license of its model.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Noon in UTC, so that the local date is the same from UTC-12 to UTC+11. */
export const recordedAt = new Date('2026-01-05T12:00:00Z')
export const bosToken = '<s>'
export const eosToken = '</s>'

/** The folder of node-llama-cpp. */
export const library = dirname(dirname(fileURLToPath(import.meta.resolve('node-llama-cpp'))))

/** Checks out folders of llama.cpp's sources, which node-llama-cpp contains as a Git bundle, in an empty directory. */
export function checkOut(directory, folders) {
  const git = (...args) => execFileSync('git', ['-C', directory, ...args], { stdio: 'pipe' })
  git('clone', '--quiet', '--no-checkout', join(library, 'llama/gitRelease.bundle'), '.')
  git('checkout', '--quiet', 'HEAD', '--', ...folders)
}

/** Checks out the folders in a temporary directory. */
export function withSources(folders, use) {
  const directory = mkdtempSync(join(tmpdir(), 'llama-cpp-'))
  try {
    checkOut(directory, folders)
    return use(directory)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Returns the source of each template by its name, such as `Qwen3-Coder`. */
export const readTemplates = (sources) =>
  new Map(
    readdirSync(join(sources, 'models/templates'))
      .filter((file) => file.endsWith('.jinja'))
      .map((file) => [
        file.slice(0, -'.jinja'.length),
        readFileSync(join(sources, 'models/templates', file), 'utf8'),
      ]),
  )

const text = { type: 'string' }
const number = { type: 'number' }
const tools = {
  get_weather: {
    description: 'The weather of a city.',
    parameters: {
      type: 'object',
      properties: {
        city: { ...text, description: 'Name of the city.' },
        days: { type: 'integer', minimum: 1 },
      },
      required: ['city'],
    },
  },
  get_time: { description: 'The time of day.', parameters: { type: 'object', properties: {} } },
  book_flight: {
    description: 'Books a flight.\nIt costs money.',
    parameters: {
      type: 'object',
      properties: {
        from: { ...text, enum: ['OSL', 'FCO'] },
        passengers: {
          type: 'array',
          items: { type: 'object', properties: { name: text, age: number }, required: ['name'] },
        },
        flexible: { type: 'boolean', default: false },
        note: { ...text, description: 'A "note" for the pilot <b>.' },
        budget: { anyOf: [number, { type: 'null' }] },
      },
      required: ['from', 'passengers'],
    },
  },
}

/** Converts the short form of `conversations.json` to a request in OpenAI's format. */
function toRequest({ name, reasoning, messages, tools: names = [] }) {
  const ids = []
  let count = 0
  return {
    name,
    messages: messages.map(({ calls, ...message }) => {
      if (message.role === 'tool') return { ...message, tool_call_id: ids.shift() }
      if (!calls) return message
      const tool_calls = calls.map(([name, input]) => ({
        // Mistral's templates reject ids of other lengths.
        id: `call${`${++count}`.padStart(5, '0')}`,
        type: 'function',
        function: { name, arguments: JSON.stringify(input) },
      }))
      ids.push(...tool_calls.map(({ id }) => id))
      return { ...message, tool_calls }
    }),
    ...(names.length > 0 && {
      tools: names.map((name) => ({ type: 'function', function: { name, ...tools[name] } })),
    }),
    ...(reasoning !== undefined && { reasoning }),
    ...(messages.at(-1).role === 'assistant' && { isContinued: true }),
  }
}

const conversations = JSON.parse(readFileSync(new URL('./conversations.json', import.meta.url), 'utf8'))
export const requests = conversations.map(toRequest)
