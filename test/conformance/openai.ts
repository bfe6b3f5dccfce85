/** One check for each requirement of the OpenAI API. */
import { text } from 'node:stream/consumers'
import { LlmError } from '@modelmount/core'
import { toTemplateMessages } from '@modelmount/core/engine'
import { readEvents, scriptedEngine } from '@modelmount/core/testing'
import type OpenAI from 'openai'
import { expect } from 'vitest'
import {
  callOllama,
  chat,
  chunksOf,
  completionOf,
  contentOf,
  eventsOf,
  expectError,
  finishOf,
  hello,
  joined,
  json,
  promptOf,
  said,
  soon,
} from './calls.ts'
import { limitsOf } from './limits.ts'
import { folderOf } from './ollama-calls.ts'
import { batches } from './openai-batches.ts'
import { choices } from './openai-choices.ts'
import { files } from './openai-files.ts'
import { output } from './openai-output.ts'
import { prompts } from './openai-prompts.ts'
import { responses } from './openai-responses.ts'
import { texts } from './openai-texts.ts'
import type { OpenAIRequirementId } from './requirements.ts'
import type { Check, InFront } from './suite.ts'

export const checks = {
  ...output,
  ...limitsOf('openai'),
  ...texts,
  ...choices,
  ...prompts,
  ...responses,
  ...files,
  ...batches,

  'openai:auth:any-key-is-accepted': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, hello, { authorization: 'Bearer anything' })

    expect(response.status).toBe(200)
  },

  'openai:auth:no-key-is-needed': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, hello)

    expect(response.status).toBe(200)
  },

  'openai:transport:request-id': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const responses = [
      await chat(url, hello),
      await chat(url, hello),
      await chat(url, { ...hello, stream: true }),
      await chat(url, { ...hello, temperature: 3 }),
      await fetch(`${url}/v1/models`),
      await fetch(`${url}/v1/nope`),
      await fetch(`${url}/v1/chat/completions`),
    ]
    await Promise.all(responses.map((response) => response.text()))

    const ids = responses.map(({ headers }) => headers.get('x-request-id'))
    expect(ids).toEqual(ids.map(() => expect.stringMatching(/^req_.+/)))
    expect(new Set(ids).size).toBe(responses.length)
  },

  'openai:transport:client-headers-have-no-effect': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, hello, {
      'openai-organization': 'org-x',
      'openai-project': 'proj-x',
      'openai-beta': 'x',
      'idempotency-key': 'x',
      'x-stainless-lang': 'js',
      'x-client-request-id': 'x',
    })

    expect(response.status).toBe(200)
    expect(contentOf(await completionOf(response))).toBe('Hello there.')
  },

  'openai:transport:parsed-body': async (serve) => {
    const bodyParser: InFront = (mounted) => async (req, res) =>
      mounted(Object.assign(req, { body: JSON.parse(await text(req)) }), res)
    const engine = scriptedEngine('Hello there.')
    const unread = await serve(engine)
    const read = await serve(engine, { inFront: bodyParser })

    const responses = [await chat(unread, hello), await chat(read, hello)]

    expect(responses.map(({ status }) => status)).toEqual([200, 200])
    const answers = await Promise.all(responses.map(completionOf))
    expect(answers.map(contentOf)).toEqual(['Hello there.', 'Hello there.'])
    expect(engine.requests[1]).toEqual(engine.requests[0])
  },

  'openai:transport:large-body': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))
    const image = `data:image/png;base64,${'A'.repeat(3_000_000)}`

    const response = await chat(url, {
      model: 'tiny',
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: image } }] }],
    })

    await expectError(response, 400, {
      param: 'messages[0].content[0]',
      code: 'unsupported_parameter',
    })
  },

  'openai:transport:too-large-body': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: json,
      body: Buffer.alloc(33 * 1024 ** 2, 'A'),
    })

    await expectError(response, 413, { code: 'request_too_large' })
  },

  'openai:errors:body-is-not-json': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers: json, body: '{' })

    await expectError(response, 400)
  },

  'openai:errors:body-is-not-an-object': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const list = await chat(url, [])
    const string = await chat(url, 'x')

    await expectError(list, 400, { code: 'invalid_type' })
    await expectError(string, 400, { code: 'invalid_type' })
  },

  'openai:errors:wrong-method': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await fetch(`${url}/v1/chat/completions`)

    expect(response.headers.get('allow')).toBe('POST')
    await expectError(response, 405, { code: 'method_not_supported' })
  },

  'openai:errors:unknown-path': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await fetch(`${url}/v1/nope`, { method: 'POST', headers: json, body: '{}' })

    await expectError(response, 404, { message: expect.stringContaining('/v1/nope') })
  },

  'openai:errors:engine-failure': async (serve) => {
    const broken = scriptedEngine(() => {
      throw new Error("ENOENT: no such file or directory, open '/home/ann/secret.gguf'")
    })
    const url = await serve(broken)

    const response = await chat(url, hello)

    const body = await response.clone().text()
    expect(body).not.toContain('/home/ann')
    expect(body).not.toContain('    at ')
    await expectError(response, 500, { type: 'server_error' })
  },

  'openai:errors:overloaded': async (serve) => {
    const url = await serve(
      scriptedEngine(new LlmError('overloaded', 'Too many calls are waiting.', { retryAfterMs: 1_500 })),
    )

    const response = await chat(url, hello)

    expect(response.headers.get('retry-after')).toBe('2')
    await expectError(response, 503, {
      type: 'server_error',
      code: 'server_overloaded',
      message: 'Too many calls are waiting.',
    })
  },

  'openai:chat:unknown-field': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, { ...hello, foo: 1 })

    expect(response.status).toBe(200)
  },

  'openai:chat:null-means-absent': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    await chat(url, hello)
    const response = await chat(url, {
      ...hello,
      frequency_penalty: null,
      function_call: null,
      functions: null,
      logit_bias: null,
      logprobs: null,
      max_completion_tokens: null,
      max_tokens: null,
      messages: [{ role: 'user', content: said, name: null }],
      metadata: null,
      min_p: null,
      modalities: null,
      n: null,
      parallel_tool_calls: null,
      prediction: null,
      presence_penalty: null,
      reasoning_effort: null,
      repeat_penalty: null,
      response_format: null,
      seed: null,
      service_tier: null,
      stop: null,
      store: null,
      stream: null,
      stream_options: null,
      temperature: null,
      tool_choice: null,
      tools: null,
      top_k: null,
      top_logprobs: null,
      top_p: null,
      user: null,
    })

    expect(contentOf(await completionOf(response))).toBe('Hello there.')
    expect(engine.requests[1]).toEqual(engine.requests[0])
  },

  'openai:chat:unknown-model': async (serve) => {
    const url = await serve(
      scriptedEngine(new LlmError('not_found', 'model "nope" not found', { param: 'model' })),
    )

    const whole = await chat(url, { ...hello, model: 'nope' })
    const streamed = await chat(url, { ...hello, model: 'nope', stream: true })

    const error = { message: expect.stringContaining('nope'), code: 'model_not_found' }
    await expectError(whole, 404, error)
    await expectError(streamed, 404, error)
  },

  'openai:chat:missing-model': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, { messages: hello.messages })

    await expectError(response, 400, { param: 'model', code: 'missing_required_parameter' })
  },

  'openai:chat:missing-messages': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, { model: 'tiny' })

    await expectError(response, 400, { param: 'messages', code: 'missing_required_parameter' })
  },

  'openai:chat:whole-shape': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, hello)

    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toMatch(/^application\/json/)
    const answer = await completionOf(response)
    expect(answer).toEqual({
      id: expect.stringMatching(/^chatcmpl-.+/),
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'tiny',
      system_fingerprint: expect.any(String),
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello there.', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: {
        prompt_tokens: 1,
        completion_tokens: 2,
        total_tokens: 3,
        prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
        completion_tokens_details: {
          reasoning_tokens: 0,
          audio_tokens: 0,
          accepted_prediction_tokens: 0,
          rejected_prediction_tokens: 0,
        },
      },
    })
    expect(Number.isInteger(answer.created)).toBe(true)
    expect(Math.abs(answer.created - Date.now() / 1000)).toBeLessThan(5)
  },

  'openai:chat:unicode': async (serve) => {
    const url = await serve(scriptedEngine((request) => [...promptOf(request)]))
    const messages = [{ role: 'user', content: '👩‍🚀 飛んで ✨ é' }]

    const whole = await chat(url, { model: 'tiny', messages })
    const streamed = await chat(url, { model: 'tiny', messages, stream: true })

    expect(contentOf(await completionOf(whole))).toBe('👩‍🚀 飛んで ✨ é')
    expect(joined(await chunksOf(streamed))).toBe('👩‍🚀 飛んで ✨ é')
  },

  'openai:chat:max-tokens': async (serve) => {
    const url = await serve(scriptedEngine('one two three four five six seven'))

    const response = await chat(url, { ...hello, max_tokens: 5 })

    const { choices, usage } = await completionOf(response)
    expect(choices[0]).toMatchObject({
      message: { content: 'one two three four five' },
      finish_reason: 'length',
    })
    expect(usage).toMatchObject({ prompt_tokens: 1, completion_tokens: 5, total_tokens: 6 })
  },

  'openai:chat:max-completion-tokens-wins': async (serve) => {
    const url = await serve(scriptedEngine('one two three four five six seven'))

    const response = await chat(url, { ...hello, max_completion_tokens: 5, max_tokens: 50 })

    const { choices, usage } = await completionOf(response)
    expect(choices[0]?.finish_reason).toBe('length')
    expect(usage?.completion_tokens).toBe(5)
  },

  'openai:chat:max-tokens-zero': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, { ...hello, max_tokens: 0 })

    await expectError(response, 400, { param: 'max_tokens', code: 'integer_below_min_value' })
  },

  'openai:chat:max-tokens-minus-one': async (serve) => {
    const engine = scriptedEngine('one two three')
    const url = await serve(engine)

    const response = await chat(url, { ...hello, max_tokens: -1 })

    expect(contentOf(await completionOf(response))).toBe('one two three')
    expect(engine.requests[0]?.maxTokens).toBeUndefined()
  },

  'openai:chat:temperature-range': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const above = await chat(url, { ...hello, temperature: 3 })
    const below = await chat(url, { ...hello, temperature: -1 })

    await expectError(above, 400, { param: 'temperature', code: 'decimal_above_max_value' })
    await expectError(below, 400, { param: 'temperature', code: 'decimal_below_min_value' })
  },

  'openai:chat:top-p-range': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, { ...hello, top_p: 1.5 })

    await expectError(response, 400, { param: 'top_p', code: 'decimal_above_max_value' })
  },

  'openai:chat:empty-messages': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, { model: 'tiny', messages: [] })

    await expectError(response, 400, { param: 'messages', code: 'empty_array' })
  },

  'openai:chat:message-without-role': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, { model: 'tiny', messages: [{ content: 'Hello' }] })

    await expectError(response, 400, { param: 'messages[0].role', code: 'missing_required_parameter' })
  },

  'openai:chat:message-with-unknown-role': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, {
      model: 'tiny',
      messages: [...hello.messages, { role: 'robot', content: 'Beep' }],
    })

    await expectError(response, 400, { param: 'messages[1].role', code: 'invalid_value' })
  },

  'openai:chat:text-parts': async (serve) => {
    const url = await serve(scriptedEngine(promptOf))
    const content = [
      { type: 'text', text: 'Once upon' },
      { type: 'text', text: ' a time' },
    ]

    const response = await chat(url, { model: 'tiny', messages: [{ role: 'user', content }] })

    expect(contentOf(await completionOf(response))).toBe('Once upon\n a time')
  },

  'openai:chat:developer-is-system': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const role of ['developer', 'system']) {
      await chat(url, { model: 'tiny', messages: [{ role, content: 'Be brief.' }, ...hello.messages] })
    }

    const [developer, system] = engine.requests
    expect(developer && toTemplateMessages(developer.input)[0]?.role).toBe('system')
    expect(developer).toEqual(system)
  },

  'openai:chat:image-on-text-model': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))
    const content = [
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url: 'https://example.com/cat.png' } },
    ]

    const response = await chat(url, { model: 'tiny', messages: [{ role: 'user', content }] })

    await expectError(response, 400, {
      param: 'messages[0].content[1]',
      code: 'unsupported_parameter',
    })
  },

  'openai:chat:context-length': async (serve) => {
    const tooLong = new LlmError('context_length', 'The prompt has 5000 tokens.', {
      inputTokens: 5000,
      contextSize: 4096,
    })
    const url = await serve(scriptedEngine(tooLong))

    const whole = await chat(url, hello)
    const streamed = await chat(url, { ...hello, stream: true })

    const error = {
      message: expect.stringMatching(
        /^This model's maximum context length is 4096 tokens\. However, your messages resulted in 5000 tokens\./,
      ),
      code: 'context_length_exceeded',
    }
    await expectError(whole, 400, error)
    await expectError(streamed, 400, error)
  },

  'openai:chat:account-fields': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, {
      ...hello,
      service_tier: 'auto',
      user: 'ann',
      store: true,
      metadata: { page: 'home' },
      verbosity: 'low',
      prediction: { type: 'content', content: 'Hello' },
    })

    expect(contentOf(await completionOf(response))).toBe('Hello there.')
  },

  'openai:chat:audio-output': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, { ...hello, modalities: ['text', 'audio'] })

    await expectError(response, 400, { param: 'modalities', code: 'unsupported_parameter' })
  },

  'openai:chat:tool-choice-none-without-tools': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const tool_choice of ['none', 'auto']) {
      const response = await chat(url, { ...hello, tool_choice })

      const { choices } = await completionOf(response)
      expect(choices[0]?.message).toEqual({ role: 'assistant', content: 'Hello there.', refusal: null })
      expect(choices[0]?.finish_reason).toBe('stop')
    }
  },

  'openai:chat:functions-are-rejected': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, {
      ...hello,
      functions: [{ name: 'now', parameters: { type: 'object', properties: {} } }],
      function_call: { name: 'now' },
    })

    await expectError(response, 400, { param: 'functions', code: 'unsupported_parameter' })
  },

  'openai:chat:n-range': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const none = await chat(url, { ...hello, n: 0 })
    const many = await chat(url, { ...hello, n: 1_000 })

    await expectError(none, 400, { param: 'n', code: 'integer_below_min_value' })
    await expectError(many, 400, { param: 'n', code: 'integer_above_max_value' })
  },

  'openai:chat:stop-forms': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const stop of ['\n', ['a', 'b', 'c', 'd'], null, ['', 'a']]) {
      const response = await chat(url, { ...hello, stop })

      expect(response.status).toBe(200)
    }

    const asked = engine.requests.map(({ stop }) => stop)
    expect(asked).toEqual([['\n'], ['a', 'b', 'c', 'd'], undefined, ['a']])
  },

  'openai:chat:logit-bias': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    const biased = await chat(url, { ...hello, logit_bias: { 50256: -100 } })
    await (await chat(url, { ...hello, logit_bias: { abc: 1 } })).text()
    const wrong = await chat(url, { ...hello, logit_bias: { '-5': 1 } })

    expect(biased.status).toBe(200)
    expect(engine.requests[0]?.sampling?.logitBias).toEqual([[50256, -100]])
    expect(engine.requests[1]?.sampling?.logitBias).toEqual([['abc', 1]])
    await expectError(wrong, 400, { param: 'logit_bias.-5', code: 'invalid_value' })
  },

  'openai:chat:top-logprobs-range': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const alone = await chat(url, { ...hello, top_logprobs: 2 })
    const many = await chat(url, { ...hello, logprobs: true, top_logprobs: 21 })

    await expectError(alone, 400, { param: 'top_logprobs', code: 'invalid_value' })
    await expectError(many, 400, { param: 'top_logprobs', code: 'integer_above_max_value' })
  },

  'openai:chat:max-tokens-beyond-the-context': async (serve) => {
    const url = await serve(scriptedEngine('one two three'))

    const response = await chat(url, { ...hello, max_tokens: 1_000_000_000 })

    const { choices } = await completionOf(response)
    expect(choices[0]).toMatchObject({ message: { content: 'one two three' }, finish_reason: 'stop' })
  },

  'openai:chat:response-format-unknown': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, { ...hello, response_format: { type: 'xml' } })

    await expectError(response, 400, { param: 'response_format.type', code: 'invalid_value' })
  },

  'openai:chat:client-disconnects': async (serve) => {
    const engine = scriptedEngine('word '.repeat(2_000), { delayMs: 5 })
    const url = await serve(engine)
    const leaving = new AbortController()
    const response = chat(url, hello, {}, leaving.signal)
    await expect.poll(() => engine.running, soon).toBe(1)

    leaving.abort()

    await expect(response).rejects.toThrow('aborted')
    await expect.poll(() => engine.running, soon).toBe(0)
  },

  'openai:chat:stream-ends-with-done': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, { ...hello, stream: true })

    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
    const body = await response.text()
    expect(body).toMatch(/^data: \{/)
    expect(body).toMatch(/\}\n\ndata: \[DONE\]\n\n$/)
    expect(body).not.toMatch(/^event:/m)
  },

  'openai:chat:stream-is-live': async (serve) => {
    const engine = scriptedEngine('word '.repeat(2_000), { delayMs: 5 })
    const url = await serve(engine)

    const response = await chat(url, { ...hello, stream: true })
    const contents: string[] = []
    for await (const { data } of readEvents(response.body as ReadableStream<Uint8Array>)) {
      contents.push((JSON.parse(data) as OpenAI.ChatCompletionChunk).choices[0]?.delta.content ?? '')
      expect(engine.running).toBe(1)
      if (contents.length === 3) break
    }

    expect(contents).toEqual(['', 'word', ' word'])
  },

  'openai:chat:stream-starts-with-role': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, { ...hello, stream: true })

    const [first, ...others] = await chunksOf(response)
    expect(first?.choices[0]).toMatchObject({ index: 0, delta: { role: 'assistant', content: '' } })
    expect(others).toHaveLength(3)
    for (const { choices } of others) expect(choices[0]?.delta).not.toHaveProperty('role')
  },

  'openai:chat:stream-joins-to-whole': async (serve) => {
    const url = await serve(scriptedEngine('Once upon a time there was a fox.'))

    const whole = await completionOf(await chat(url, hello))
    const chunks = await chunksOf(await chat(url, { ...hello, stream: true }))

    expect(joined(chunks)).toBe(contentOf(whole))
    const contents = chunks.slice(1, -1).map(({ choices }) => choices[0]?.delta.content)
    expect(contents).toEqual(['Once', ' upon', ' a', ' time', ' there', ' was', ' a', ' fox.'])
  },

  'openai:chat:stream-finish-reason': async (serve) => {
    const url = await serve(scriptedEngine('one two three'))

    const stopped = await chunksOf(await chat(url, { ...hello, stream: true }))
    const cut = await chunksOf(await chat(url, { ...hello, stream: true, max_tokens: 2 }))

    expect(stopped.map(finishOf)).toEqual([null, null, null, null, 'stop'])
    expect(cut.map(finishOf)).toEqual([null, null, null, 'length'])
    expect(stopped.at(-1)?.choices[0]?.delta).toEqual({})
    expect(cut.at(-1)?.choices[0]?.delta).toEqual({})
  },

  'openai:chat:stream-usage': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, { ...hello, stream: true, stream_options: { include_usage: true } })

    const chunks = await chunksOf(response)
    expect(chunks.slice(0, -1).map(({ usage }) => usage)).toEqual([null, null, null, null])
    expect(chunks.at(-1)).toMatchObject({
      object: 'chat.completion.chunk',
      choices: [],
      usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
    })
  },

  'openai:chat:stream-without-usage': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, { ...hello, stream: true })

    const chunks = await chunksOf(response)
    expect(chunks).toHaveLength(4)
    for (const chunk of chunks) {
      expect(chunk).not.toHaveProperty('usage')
      expect(chunk.choices).toHaveLength(1)
    }
  },

  'openai:chat:stream-identity': async (serve) => {
    const url = await serve(scriptedEngine('one two three'))

    const response = await chat(url, { ...hello, stream: true, stream_options: { include_usage: true } })

    const chunks = await chunksOf(response)
    const { id, created, system_fingerprint } = chunks[0] as OpenAI.ChatCompletionChunk
    expect(chunks).toHaveLength(6)
    expect(id).toMatch(/^chatcmpl-.+/)
    expect(Math.abs(created - Date.now() / 1000)).toBeLessThan(5)
    for (const chunk of chunks) {
      expect(chunk).toMatchObject({
        id,
        object: 'chat.completion.chunk',
        created,
        model: 'tiny',
        system_fingerprint,
      })
    }
  },

  'openai:chat:stream-error': async (serve) => {
    const failure = new LlmError('upstream', 'The model process has ended.')
    const url = await serve(
      scriptedEngine((request) => (promptOf(request) === 'Fail' ? ['Once', ' upon', failure] : 'Hello.')),
    )
    const messages = [{ role: 'user', content: 'Fail' }]

    const failed = await chat(url, { model: 'tiny', messages, stream: true })
    const frames = (await eventsOf(failed)).map((data) => JSON.parse(data))
    const next = await chat(url, hello)

    expect(failed.status).toBe(200)
    expect(joined(frames.slice(0, -1))).toBe('Once upon')
    expect(frames.slice(0, -1).map(finishOf)).toEqual([null, null, null])
    expect(frames.at(-1)).toEqual({
      error: { message: 'The model process has ended.', type: 'server_error', param: null, code: null },
    })
    expect(contentOf(await completionOf(next))).toBe('Hello.')
  },

  'openai:chat:stream-of-invalid-request': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await chat(url, { ...hello, stream: true, temperature: 3 })

    await expectError(response, 400, { param: 'temperature', code: 'decimal_above_max_value' })
  },

  'openai:chat:stream-client-disconnects': async (serve) => {
    const engine = scriptedEngine('word '.repeat(2_000), { delayMs: 5 })
    const url = await serve(engine)
    const leaving = new AbortController()
    const response = await chat(url, { ...hello, stream: true }, {}, leaving.signal)
    expect(engine.running).toBe(1)

    leaving.abort()

    await expect(response.text()).rejects.toThrow('aborted')
    await expect.poll(() => engine.running, soon).toBe(0)
    const next = await chat(url, { ...hello, max_tokens: 2 })
    expect(contentOf(await completionOf(next))).toBe('word word')
  },

  'openai:chat:stream-many-at-once': async (serve) => {
    const engine = scriptedEngine((request) => `${promptOf(request)} `.repeat(20), { delayMs: 1 })
    const url = await serve(engine)

    const answers = await Promise.all(
      Array.from({ length: 50 }, async (_, number) => {
        const messages = [{ role: 'user', content: `marker-${number}` }]
        return joined(await chunksOf(await chat(url, { model: 'tiny', messages, stream: true })))
      }),
    )

    expect(answers).toEqual(answers.map((_, number) => `marker-${number} `.repeat(20)))
  },

  'openai:models:list': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await fetch(`${url}/v1/models`)

    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({
      object: 'list',
      data: [{ id: 'tiny:latest', object: 'model', created: expect.any(Number), owned_by: 'modelmount' }],
    })
  },

  'openai:models:retrieve': async (serve) => {
    const given = { models: folderOf({}), scopes: ['inference', 'models'] } as const
    const url = await serve(scriptedEngine('Hello there.'), given)
    await callOllama(url, 'copy', { source: 'tiny', destination: 'team/copy:q4' })

    for (const [path, id] of [
      ['tiny', 'tiny'],
      ['tiny:latest', 'tiny:latest'],
      ['tiny%3Alatest', 'tiny:latest'],
      ['team/copy:q4', 'team/copy:q4'],
      ['team%2Fcopy%3Aq4', 'team/copy:q4'],
    ]) {
      const response = await fetch(`${url}/v1/models/${path}`)

      expect(response.status).toBe(200)
      expect(await response.json()).toEqual({
        id,
        object: 'model',
        created: expect.any(Number),
        owned_by: id?.startsWith('tiny') ? 'modelmount' : 'library',
      })
    }
  },

  'openai:models:retrieve-unknown': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    for (const path of ['org%2Fx:Q4', 'org/x:Q4']) {
      const response = await fetch(`${url}/v1/models/${path}`)

      await expectError(response, 404, {
        message: expect.stringContaining('org/x:Q4'),
        code: 'model_not_found',
      })
    }
  },
} satisfies Record<OpenAIRequirementId, Check>
