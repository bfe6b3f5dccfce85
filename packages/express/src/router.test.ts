import { type Caller, createLlm, type Llm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import type { ErrorRequestHandler, RequestHandler } from 'express'
import request from 'supertest'
import { describe, expect, test } from 'vitest'
import { emptyFolder } from '../../../test/support/empty-folder.ts'
import { expresses } from '../../../test/support/expresses.ts'

const engine = scriptedEngine('Hello there.')
const models = emptyFolder()
const llm = await createLlm({ engine, models })
const hello = { model: 'tiny', messages: [{ role: 'user', content: 'Hello' }] }
const users: RequestHandler = (_req, res) => void res.json(['ann'])

describe.each(expresses)('Express $version', ({ version, express, llmRouter }) => {
  test('wildcards have the syntax of this Express version', () => {
    const router = llmRouter(llm)

    const paths = router.stack.flatMap(({ route }) => (route ? [route.path] : []))

    expect(paths).toContain({ 4: '/v1/models/:model(*)', 5: '/v1/models/*model' }[version])
  })

  test.each([
    ['/v1/models/team/name', 'team/name'],
    ['/v1/models/team%2Fname', 'team/name'],
    ['/v1/models/a//b/', 'a//b/'],
    ['/v1/models/two%20words?x=/y', 'two words'],
  ])('%s asks for the model %j', async (path, model) => {
    const app = express().use(llmRouter(llm))

    const response = await request(app).get(path)

    expect(response.status).toBe(404)
    expect(response.body.error).toMatchObject({ message: expect.stringContaining(`"${model}"`) })
  })

  test('if earlier middleware has answered, our answer is dropped, and the connection stays usable', async () => {
    const errors: unknown[] = []
    const answerTooEarly: RequestHandler = (_req, res, next) => {
      res.status(503).send('too early')
      next()
    }
    const keep: ErrorRequestHandler = (error, _req, _res, _next) => errors.push(error)
    const app = express().use(answerTooEarly, llmRouter(llm), keep)

    const first = await request(app).post('/v1/chat/completions').send(hello)
    const second = await request(app).delete('/v1/chat/completions')

    expect([first.text, second.text]).toEqual(['too early', 'too early'])
    expect(errors).toEqual([])
  })

  describe('at the root', () => {
    test('our routes answer, and so do the routes of the app behind them', async () => {
      const app = express().use(llmRouter(llm)).get('/api/users', users)

      const ours = await request(app).post('/v1/chat/completions').send(hello)
      const theirs = await request(app).get('/api/users')

      expect(ours.status).toBe(200)
      expect(ours.body.choices[0].message.content).toBe('Hello there.')
      expect(theirs.body).toEqual(['ann'])
      expect(theirs.headers).not.toHaveProperty('x-request-id')
    })

    test('an unknown path falls through to the 404 of the app', async () => {
      const app = express()
        .use(llmRouter(llm))
        .use((_req, res) => void res.status(404).send('the app knows no such page'))

      const response = await request(app).post('/v1/nope').send({})

      expect(response.status).toBe(404)
      expect(response.text).toBe('the app knows no such page')
    })

    test('with unknownRoutes: error, an unknown path gets the 404 of its API', async () => {
      const app = express()
        .use(llmRouter(llm, { unknownRoutes: 'error' }))
        .get('/api/users', users)

      const response = await request(app).get('/api/users')

      expect(response.status).toBe(404)
      expect(response.text).toBe('404 page not found')
    })

    test('a wrong method on one of our paths reaches a route of the app, or its 404', async () => {
      const app = express().use(llmRouter(llm)).delete('/api/tags', users)

      const theirs = await request(app).delete('/api/tags')
      const nobodys = await request(app).put('/v1/models/tiny')

      expect(theirs.body).toEqual(['ann'])
      expect(nobodys.status).toBe(404)
      expect(nobodys.text).toContain('Cannot PUT /v1/models/tiny')
    })

    test('with unknownRoutes: error, a wrong method gets a 405 that lists the allowed methods', async () => {
      const app = express().use(llmRouter(llm, { unknownRoutes: 'error' }))

      const chat = await request(app).delete('/v1/chat/completions')
      const model = await request(app).post('/v1/models/tiny')

      expect(chat.status).toBe(405)
      expect(chat.headers.allow).toBe('POST')
      expect(chat.body.error).toMatchObject({ type: 'invalid_request_error', code: 'method_not_supported' })
      expect(model.status).toBe(405)
      expect(model.headers.allow).toBe('GET, HEAD, DELETE')
    })

    test('a path that cannot be percent-decoded falls through to the 404 of the app', async () => {
      const app = express()
        .use(llmRouter(llm))
        .use((_req, res) => void res.status(404).send('the app knows no such page'))

      const response = await request(app).get('/v1/models/%ff')

      expect(response.status).toBe(404)
      expect(response.text).toBe('the app knows no such page')
    })
  })

  describe('under a prefix', () => {
    test('our routes answer', async () => {
      const app = express().use('/ai', llmRouter(llm))

      const chat = await request(app).post('/ai/v1/chat/completions').send(hello)
      const model = await request(app).get('/ai/v1/models/tiny')

      expect(chat.body.choices[0].message.content).toBe('Hello there.')
      expect(model.body.id).toBe('tiny')
    })

    test('an unknown path gets the 404 of its API, which names the path below the prefix', async () => {
      const app = express().use('/ai', llmRouter(llm)).get('/ai/v1/nope', users)

      const response = await request(app).get('/ai/v1/nope')

      expect(response.status).toBe(404)
      expect(response.body).toEqual({
        error: {
          message: 'Invalid URL (GET /v1/nope)',
          type: 'invalid_request_error',
          param: null,
          code: null,
        },
      })
    })

    test.each(['', '/'])(
      'the prefix itself, followed by %j, answers with the greeting of Ollama',
      async (slash) => {
        const app = express().use('/ai', llmRouter(llm))

        const response = await request(app).get(`/ai${slash}`)

        expect([response.status, response.text]).toEqual([200, 'Ollama is running'])
      },
    )

    test('with unknownRoutes: pass, an unknown path falls through', async () => {
      const app = express()
        .use('/ai', llmRouter(llm, { unknownRoutes: 'pass' }))
        .get('/ai/users', users)

      const response = await request(app).get('/ai/users')

      expect(response.body).toEqual(['ann'])
    })

    test('paths outside the prefix are passed to the host app', async () => {
      const app = express().use('/ai', llmRouter(llm)).get('/v1/models', users)

      const response = await request(app).get('/v1/models')

      expect(response.body).toEqual(['ann'])
    })

    test('a path that cannot be percent-decoded gets the 404 of its API', async () => {
      const app = express().use('/ai', llmRouter(llm))

      const response = await request(app).get('/ai/v1/models/%ff')

      expect(response.status).toBe(404)
      expect(response.body.error).toMatchObject({
        message: 'Invalid URL (GET /v1/models/%ff)',
        type: 'invalid_request_error',
      })
    })
  })

  describe('together with middleware of the host app', () => {
    test('the router reads a body before express.json()', async () => {
      const app = express().use(llmRouter(llm)).use(express.json())

      const response = await request(app).post('/v1/chat/completions').send(hello)

      expect(response.body.choices[0].message.content).toBe('Hello there.')
    })

    test('the router accepts a body that express.json() has parsed', async () => {
      const app = express().use(express.json()).use(llmRouter(llm))

      const response = await request(app).post('/v1/chat/completions').send(hello)

      expect(response.body.choices[0].message.content).toBe('Hello there.')
    })

    test('the router reads a body that express.json() ignores', async () => {
      const app = express().use(express.json()).use(llmRouter(llm))

      const response = await request(app)
        .post('/v1/chat/completions')
        .type('text/plain')
        .send(JSON.stringify(hello))

      expect(response.body.choices[0].message.content).toBe('Hello there.')
    })

    test('a body over bodyLimit gets the 413 of its API', async () => {
      const app = express().use(llmRouter(llm, { bodyLimit: '1kb' }))

      const response = await request(app)
        .post('/v1/chat/completions')
        .send({ ...hello, user: 'x'.repeat(1024) })

      expect(response.status).toBe(413)
      expect(response.body.error.code).toBe('request_too_large')
    })

    test('headers that the app has set stay on answers, streams and errors', async () => {
      const app = express()
        .use((_req, res, next) => {
          res.setHeader('access-control-allow-origin', 'https://example.com')
          next()
        })
        .use(llmRouter(llm, { unknownRoutes: 'error' }))

      const responses = [
        await request(app).get('/v1/models'),
        await request(app)
          .post('/v1/chat/completions')
          .send({ ...hello, stream: true }),
        await request(app).post('/v1/chat/completions').send({}),
        await request(app).delete('/v1/models'),
      ]

      expect(responses.map(({ status }) => status)).toEqual([200, 200, 400, 405])
      for (const { headers } of responses) {
        expect(headers['access-control-allow-origin']).toBe('https://example.com')
      }
    })

    test('the router answers OPTIONS on our paths', async () => {
      const app = express().use(llmRouter(llm))

      const response = await request(app).options('/v1/chat/completions')

      expect(response.status).toBe(204)
      expect(response.headers.allow).toBe('POST')
    })

    test('with auth: host, the app names the caller, and a request without a caller gets the 401 of its API', async () => {
      const hosted = await createLlm({ engine, models, auth: 'host' })
      const app = express().use(
        llmRouter(hosted, { authenticate: (req) => callers[req.get('x-user') ?? ''] }),
      )

      const ada = await request(app).get('/v1/models').set('x-user', 'ada')
      const guest = await request(app).get('/v1/models').set('x-user', 'guest')
      const nobody = await request(app).get('/v1/models')

      expect([ada.status, guest.status, nobody.status]).toEqual([200, 403, 401])
      expect(nobody.body.error).toMatchObject({ type: 'invalid_request_error', code: 'invalid_api_key' })
    })

    test('a guard in front names no caller, and the 401 says what to write instead', async () => {
      const requireUser: RequestHandler = (req, _res, next) => {
        Object.assign(req, { user: { id: 'ada' } })
        next()
      }
      const hosted = await createLlm({ engine, models, auth: 'host' })
      const withUser = { authenticate: (req: object) => ('user' in req ? (req.user as Caller) : undefined) }
      const guarded = express().use(requireUser, llmRouter(llm))
      const complete = express().use(requireUser, llmRouter(hosted, withUser))

      const [refused, answered] = await Promise.all(
        [guarded, complete].map((app) =>
          request(app).get('/v1/models').set('x-forwarded-for', '203.0.113.7'),
        ),
      )

      expect(refused?.status).toBe(401)
      expect(refused?.body.error.message).toContain(
        "write createLlm({ auth: 'host' }), and as an option of the mounted routes `authenticate: (req) => req.user && { id: req.user.id }`. A login or a guard in front of the routes does not count without it.",
      )
      expect(answered?.status).toBe(200)
    })

    test('with auth: host, a missing authenticate option throws at mounting', async () => {
      const hosted = await createLlm({ engine, models, auth: 'host' })

      expect(() => llmRouter(hosted)).toThrow(TypeError)
    })

    test('OPTIONS on other paths is passed to the host app', async () => {
      const app = express()
        .use('/ai', llmRouter(llm))
        .options('/ai/users', (_req, res) => void res.status(204).end())

      const response = await request(app).options('/ai/users')

      expect(response.status).toBe(204)
    })
  })

  test('HEAD on a GET route answers with its headers and no body', async () => {
    const app = express().use(llmRouter(llm))

    const response = await request(app).head('/v1/models')

    expect(response.status).toBe(200)
    expect(response.headers['content-type']).toMatch(/^application\/json/)
    expect(response.text).toBeUndefined()
  })

  test('paths are case-sensitive', async () => {
    const app = express().use(llmRouter(llm))

    const response = await request(app).get('/V1/models')

    expect(response.status).toBe(404)
    expect(response.headers).not.toHaveProperty('x-request-id')
  })

  test('invalid options throw at mounting, not at the first call', () => {
    expect(() => llmRouter(llm, { dialects: [] })).toThrow(TypeError)
    expect(() => llmRouter(createLlm() as unknown as Llm)).toThrow('await createLlm()')
  })
})

const callers: Record<string, Caller> = {
  ada: { id: 'ada' },
  guest: { id: 'guest', scopes: [] },
}
