/** Who may call, and from which pages: the same in every mount. */
import { scriptedEngine } from '@modelmount/core/testing'
import { expect } from 'vitest'
import { hello } from './calls.ts'
import type { Check } from './suite.ts'

const call = (url: string, headers: Record<string, string>, method = 'POST') =>
  fetch(`${url}/v1/chat/completions`, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(method === 'POST' && { body: JSON.stringify(hello) }),
  })

async function outcome(response: Response) {
  const { error } = (await response.json()) as { error?: { type: string; message: string } }
  return { status: response.status, type: error?.type }
}

export const manners: Readonly<Record<string, Check>> = {
  'a call that came through a proxy is not one from this machine: 401': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    const response = await call(url, { 'x-forwarded-for': '203.0.113.7' })

    expect(await outcome(response)).toEqual({ status: 401, type: 'invalid_request_error' })
    expect(engine.requests).toEqual([])
  },

  'a page on another origin gets nothing: 403, and nothing is asked': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    const response = await call(url, { origin: 'https://evil.example' })

    expect(response.headers.get('access-control-allow-origin')).toBeNull()
    expect(await outcome(response)).toEqual({ status: 403, type: 'invalid_request_error' })
    expect(engine.requests).toEqual([])
  },

  'a page from this machine may call, and read the answer and its headers': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await call(url, { origin: 'http://localhost:5173' })

    expect(response.status).toBe(200)
    expect(response.headers.get('access-control-allow-origin')).toBe('http://localhost:5173')
    expect(response.headers.get('access-control-expose-headers')).toBe('*')
    expect(response.headers.get('vary')).toContain('Origin')
  },

  'a page from this machine may read an error, too': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await fetch(`${url}/v1/models/none`, { headers: { origin: 'http://localhost:5173' } })

    expect(response.status).toBe(404)
    expect(response.headers.get('access-control-allow-origin')).toBe('http://localhost:5173')
  },

  'a browser that asks beforehand is told what a page may send': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await call(
      url,
      {
        origin: 'http://127.0.0.1:3000',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type,x-stainless-os',
      },
      'OPTIONS',
    )

    expect(response.status).toBe(204)
    expect(response.headers.get('access-control-allow-origin')).toBe('http://127.0.0.1:3000')
    expect(response.headers.get('access-control-allow-methods')).toBe('POST')
    expect(response.headers.get('access-control-allow-headers')).toBe(
      'authorization,content-type,x-stainless-os',
    )
  },

  'a browser that asks for a page on another origin is told no': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await call(
      url,
      { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
      'OPTIONS',
    )

    expect(response.status).toBe(403)
    expect(response.headers.get('access-control-allow-origin')).toBeNull()
  },
}
