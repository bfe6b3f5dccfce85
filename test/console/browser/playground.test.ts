/** The playground in a browser, with the built-in model. */
import { beforeAll, expect, test } from 'vitest'
import { type ConsoleApp, startConsole } from '../../support/console.ts'

let app: ConsoleApp
beforeAll(async () => {
  app = await startConsole({ engine: undefined })
})

const user = { scopes: ['inference'] } as const
const message = { name: 'Message' } as const

test.each(['OpenAI', 'Anthropic', 'Ollama'])('a message is answered through the %s API', async (api) => {
  const { page, expectGood } = await app.open({ key: user, page: '#/playground' })

  await page.getByLabel('API', { exact: true }).selectOption(api)
  await page.getByRole('textbox', message).fill('Hello')
  await page.keyboard.press('Enter')
  const facts = page.getByRole('article', { name: 'tiny:latest' }).locator('dl')
  await facts.waitFor()

  expect(await facts.textContent()).toMatch(/First token.*Prompt\d+ tokens.*From the cache.*Answer\d+ tokens/)
  await expectGood(`playground-${api.toLowerCase()}`)
})

test('a tool call is answered by hand, on a phone', async () => {
  const { page, expectGood } = await app.open({ key: user, page: '#/playground', width: 360 })

  await page.getByText('Prompt, parameters, tools').click()
  await page.getByRole('button', { name: 'Example (Tools)' }).click()
  await page.getByRole('textbox', message).fill('What is the weather in Paris?')
  await page.keyboard.press('Enter')
  await page.getByLabel('Result of get_weather').fill('{"temperature": 21}')
  await expectGood('playground-tool-phone')
  await page.keyboard.press('Control+Enter')

  await page.getByRole('article', { name: 'tiny:latest' }).last().getByText('21').waitFor()
})

test('an error is shown in the words of the API, and the message can be sent again', async () => {
  const { page, expectGood } = await app.open({ key: user, page: '#/playground' })

  await page.getByLabel('API', { exact: true }).selectOption('Anthropic')
  await page.getByLabel('Temperature').fill('-1')
  await page.getByRole('textbox', message).fill('Hello')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').getByText('temperature: Input should be').waitFor()
  await expectGood('playground-error')
  await page.getByLabel('Temperature').fill('0')
  await page.getByRole('button', { name: 'Try again' }).click()

  await page.getByRole('article', { name: 'tiny:latest' }).getByText('Hello').waitFor()
  expect(await page.getByRole('article', { name: 'You' }).count()).toBe(1)
})

test('an answer stops when the viewer asks, and texts stay texts', async () => {
  const { page, expectGood } = await app.open({ key: user, page: '#/playground', colorScheme: 'dark' })
  // The model never ends this answer by itself.
  await page.getByLabel('System prompt').fill('<img src=x onerror="document.title=1">')
  await page.getByLabel('JSON Schema').fill('{"type":"array","minItems":2000,"items":{"type":"integer"}}')
  await page.getByRole('textbox', message).fill('<img src=x onerror="document.title=1">')
  await page.keyboard.press('Enter')
  await page.getByRole('article', { name: 'tiny:latest' }).getByText('[').waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()

  await page.getByText('Endstopped').waitFor()
  await expectGood('playground-stopped-dark')
  expect(await page.locator('main img').count()).toBe(0)
})

test('the code of the request contains no secret', async () => {
  const { page, secret, expectGood } = await app.open({ key: user, page: '#/playground' })

  await page.getByRole('textbox', message).fill('Why?')
  await page.getByRole('button', { name: 'Code' }).click()
  for (const name of ['curl', 'openai', 'anthropic', 'ollama']) {
    await page.getByRole('button', { name, exact: true }).click()
    const code = (await page.getByRole('region', { name: `Code for ${name}` }).textContent()) ?? ''
    expect(code).toContain('MODELMOUNT_API_KEY')
    expect(code).toContain('Why?')
    expect(code).not.toContain(secret)
  }
  await expectGood('playground-code')
})

test('wrong JSON keeps a message from being sent, and says so', async () => {
  const { page, expectGood } = await app.open({ key: user, page: '#/playground' })

  await page.getByLabel('Tools').fill('{')
  await page.getByRole('textbox', message).fill('Hello')

  await page.getByText('Cannot send. Tools: Not valid JSON').waitFor()
  expect(await page.getByRole('button', { name: 'Send' }).isDisabled()).toBe(true)
  await expectGood('playground-problem')
})
