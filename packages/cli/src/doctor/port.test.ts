import { expect, onTestFinished, test } from 'vitest'
import { listen } from '../../../../test/support/listen.ts'
import { checkPort } from './port.ts'

async function portOf(greeting: string): Promise<number> {
  const { url, close } = await listen((_request, response) => void response.end(greeting))
  onTestFinished(close)
  return Number(new URL(url).port)
}

test('a port of a server of Modelmount is ok', async () => {
  const port = await portOf('{"data":[{"owned_by":"modelmount"}]}')

  expect(await checkPort('127.0.0.1', port)).toMatchObject({
    status: 'ok',
    message: `A server of Modelmount listens on 127.0.0.1:${port}`,
  })
})

test('a port of another program is a warning with another port', async () => {
  const port = await portOf('Ollama is running')

  expect(await checkPort('127.0.0.1', port)).toMatchObject({
    status: 'warning',
    message: `127.0.0.1:${port} is in use by Ollama.`,
    fix: expect.stringContaining('modelmount serve --port'),
  })
})

test('a free port is ok, and an address of another machine is a problem', async () => {
  expect(await checkPort('127.0.0.1', 0)).toMatchObject({ status: 'ok' })
  expect(await checkPort('192.0.2.1', 11_434)).toMatchObject({ status: 'problem' })
})
