import { describe, expect, test } from 'vitest'
import { type Answer, differences } from './compare.ts'
import { exchanges } from './recording.ts'

const json = (body: unknown, status = 200): Answer => ({
  status,
  contentType: 'application/json',
  body: JSON.stringify(body),
})

const lines = (...values: readonly unknown[]): Answer => ({
  status: 200,
  contentType: 'application/x-ndjson',
  body: values.map((value) => `${JSON.stringify(value)}\n`).join(''),
})

const events = (body: string): Answer => ({ status: 200, contentType: 'text/event-stream', body })

const exact = { exact: true }
const lenient = { exact: false }

describe('two responses', () => {
  test('are equal when only their values differ', async () => {
    const recorded = json({ model: 'tiny', done: true, context: [1, 2], message: { content: 'Hi' } })
    const ours = json({ done: false, model: 'other', context: [3], message: { content: '' } })

    expect(await differences(recorded, ours, exact)).toEqual([])
  })

  test('are equal when they are identical, as each recorded one', async () => {
    for (const { id, response } of exchanges) {
      const answer = { ...response, contentType: response.headers['content-type'] }

      expect(await differences(answer, answer, exact), id).toEqual([])
    }
  })

  test('differ by status', async () => {
    const found = await differences(json({ model: 'tiny' }), json({ error: 'not found' }, 404), exact)

    expect(found).toEqual(['status 404, recorded 200: {"error":"not found"}'])
  })

  test('differ by media type, not by charset', async () => {
    const recorded = json({})

    const charset = { ...recorded, contentType: 'application/json; charset=utf-8' }
    const text = { ...recorded, contentType: 'text/plain' }

    expect(await differences(recorded, charset, exact)).toEqual([])
    expect(await differences(recorded, text, exact)).toEqual([
      'content type text/plain, recorded application/json',
    ])
  })

  test('with text bodies are equal', async () => {
    const recorded = { status: 404, contentType: 'text/plain', body: '404 page not found' }

    expect(await differences(recorded, { ...recorded, body: 'Nothing here.' }, exact)).toEqual([])
  })

  test('differ when one body is empty', async () => {
    const text = { status: 405, contentType: 'text/plain', body: 'not allowed' }
    const empty = { ...text, body: '' }

    expect(await differences(text, empty, exact)).toEqual(['a body missing'])
    expect(await differences(empty, text, exact)).toEqual(['a body not recorded'])
    expect(await differences(empty, empty, exact)).toEqual([])
  })

  test('differ when our body contradicts its media type', async () => {
    const found = await differences(json({}), { ...json({}), body: '<html>' }, exact)

    expect(found).toEqual(['a body that is not application/json: <html>'])
  })
})

describe('a JSON body', () => {
  test('differs by a missing key, at its path', async () => {
    const recorded = json({ details: { family: 'llama', format: 'gguf' } })

    const found = await differences(recorded, json({ details: { family: 'llama' } }), exact)

    expect(found).toEqual(['details.format: missing'])
  })

  test('differs by an unrecorded key, unless additions are allowed', async () => {
    const recorded = json({ id: '1' })
    const ours = json({ id: '1', refusal: null })

    expect(await differences(recorded, ours, exact)).toEqual(['refusal: not recorded'])
    expect(await differences(recorded, ours, lenient)).toEqual([])
  })

  test('differs by the type of a value', async () => {
    const recorded = json({ size: 1, families: null })

    expect(await differences(recorded, json({ size: '1', families: [] }), exact)).toEqual([
      'size: string, recorded number',
      'families: list, recorded null',
    ])
  })

  test('may have a value for a recorded null where additions are allowed', async () => {
    const recorded = json({ error: { param: null } })

    expect(await differences(recorded, json({ error: { param: 'model' } }), lenient)).toEqual([])
  })

  test('may have or lack an optional key', async () => {
    const rules = { exact: true, optional: ['message.thinking'] }
    const without = json({ message: { content: '' } })
    const withKey = json({ message: { content: '', thinking: 'Hm' } })

    expect(await differences(without, withKey, rules)).toEqual([])
    expect(await differences(withKey, without, rules)).toEqual([])
  })

  test('has the recorded type in an optional key, too', async () => {
    const rules = { exact: true, optional: ['thinking'] }

    expect(await differences(json({ thinking: 'Hm' }), json({ thinking: true }), rules)).toEqual([
      'thinking: boolean, recorded string',
    ])
  })

  test('may have other keys in objects whose keys are data', async () => {
    const recorded = json({ model_info: { 'qwen3.block_count': 2 } })
    const ours = json({ model_info: { 'llama.block_count': 2 } })

    expect(await differences(recorded, ours, { exact: true, maps: ['model_info'] })).toEqual([])
    expect(await differences(recorded, ours, exact)).toEqual([
      'model_info.qwen3.block_count: missing',
      'model_info.llama.block_count: not recorded',
    ])
  })

  test('has only list elements with a recorded shape', async () => {
    const recorded = json({ models: [{ name: 'a' }, { name: 'b', remote_host: 'x' }] })

    expect(await differences(recorded, json({ models: [{ name: 'c' }] }), exact)).toEqual([])
    expect(await differences(recorded, json({ models: [{ name: 'c' }, { id: 'd' }] }), exact)).toEqual([
      'models[].name: missing',
      'models[].id: not recorded',
    ])
  })

  test('has an empty list only where that was recorded or is allowed', async () => {
    const full = json({ models: [{ name: 'a' }] })
    const empty = json({ models: [] })
    const rules = { exact: true, mayBeEmpty: ['models'] }

    expect(await differences(full, empty, exact)).toEqual(['models: 0 elements, recorded 1'])
    expect(await differences(full, empty, rules)).toEqual([])
    expect(await differences(empty, full, rules)).toEqual([])
  })
})

describe('a stream', () => {
  const piece = { response: 'Hel', done: false }
  const end = { response: '', done: true, eval_count: 2 }

  test('of lines may have any number of chunks', async () => {
    expect(await differences(lines(piece, end), lines(piece, piece, piece, end), exact)).toEqual([])
  })

  test('of lines differs by a chunk of another shape', async () => {
    const other = { response: 'lo', done: false, tokens: [1] }

    expect(await differences(lines(piece, end), lines(piece, other, end), exact)).toEqual([
      'tokens: not recorded',
    ])
    expect(await differences(lines(piece, other, end), lines(piece, end), exact)).toEqual(['tokens: missing'])
  })

  test('of lines differs by its last line', async () => {
    expect(await differences(lines(piece, end), lines(piece, piece), exact)).toEqual([
      'last eval_count: missing',
    ])
  })

  test('without chunks differs from one with chunks', async () => {
    expect(await differences(lines(piece, end), lines(end), exact)).toEqual(['nothing to compare with'])
  })

  test('of events differs by an event name', async () => {
    const recorded = events('event: ping\ndata: {"a":1}\n\nevent: stop\ndata: {"b":2}\n\n')
    const ours = events('event: pong\ndata: {"a":1}\n\nevent: stop\ndata: {"b":2}\n\n')

    expect(await differences(recorded, ours, lenient)).toEqual(['ping: missing'])
  })

  test('of events may have more event kinds where additions are allowed', async () => {
    const recorded = events('data: {"a":1}\n\ndata: [DONE]\n\n')
    const ours = events('data: {"a":1}\n\ndata: {"b":1}\n\ndata: [DONE]\n\n')

    expect(await differences(recorded, ours, lenient)).toEqual([])
    expect(await differences(recorded, ours, exact)).toEqual(['a: missing', 'b: not recorded'])
  })

  test('of events differs when its last one is missing', async () => {
    const recorded = events('data: {"a":1}\n\ndata: [DONE]\n\n')
    const ours = events('data: {"a":1}\n\ndata: {"a":1}\n\n')

    expect(await differences(recorded, ours, lenient)).toEqual(['last body: object, recorded string'])
  })
})
