/** The pages of models in a browser, with the built-in model and a registry of the test. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ConsoleApp, startConsole } from '../../support/console.ts'
import { noiseBlob, SmallRegistry } from '../../support/registry.ts'
import { madeModel, put } from '../../support/transfers.ts'

const megabyte = 1024 ** 2
const weights = noiseBlob('weights', 3 * megabyte)
let registry: SmallRegistry
let app: ConsoleApp
beforeAll(async () => {
  registry = await SmallRegistry.start()
  put(registry, 'library/small', madeModel(weights))
  app = await startConsole({
    engine: undefined,
    store: { registries: [], privateRegistries: [registry.host] },
  })
})
afterAll(() => registry.close())

const manager = { scopes: ['models', 'inference'] } as const
const name = () => `${registry.host}/library/small`

/** Lets the registry send the weights up to a byte, and the rest when the returned function is called. */
function holdWeights(firstBytes: number): () => void {
  let send = (): void => {}
  registry.intercept(new RegExp(`^GET /v2/library/small/blobs/${weights.digest}`), (request, response) => {
    const [, start = '0'] = /^bytes=(\d+)-/.exec(request.headers.range ?? '') ?? []
    const from = Number(start)
    response.writeHead(from > 0 || request.headers.range ? 206 : 200, {
      'content-length': weights.sizeBytes - from,
      ...(request.headers.range && {
        'content-range': `bytes ${from}-${weights.sizeBytes - 1}/${weights.sizeBytes}`,
      }),
    })
    const bytes = Buffer.concat([...weights.bytes(from, weights.sizeBytes)])
    const held = Math.max(0, firstBytes - from)
    response.write(bytes.subarray(0, held))
    send = () => response.end(bytes.subarray(held))
  })
  return () => send()
}

test('a manager pulls a model, sees how far it is, and cancels it', async () => {
  holdWeights(megabyte)
  const { page, expectGood } = await app.open({ key: manager, page: '#/models' })

  await page.getByRole('button', { name: 'Pull model' }).click()
  await page.getByLabel('Model', { exact: true }).fill(name())
  await page.getByLabel('Connect without TLS').check()
  await page.getByRole('button', { name: 'Pull', exact: true }).click()
  const bar = page.getByRole('progressbar', { name: `Pulling ${name()}` })
  await expect.poll(() => bar.getAttribute('aria-valuenow')).toBe('33')
  await expectGood('models-pull')
  // It goes on below other pages.
  await page.getByRole('link', { name: 'Playground' }).click()
  await page.getByRole('link', { name: 'Models' }).click()
  expect(await bar.isVisible()).toBe(true)
  await page.getByRole('button', { name: `Cancel ${name()}` }).click()

  await page.getByText('to continue where it stopped').waitFor()
  await bar.waitFor({ state: 'detached' })
  expect((await app.llm.models.list()).map(({ name }) => name)).toEqual(['tiny:latest'])
})

test('a canceled pull resumes, and the model can be deleted', async () => {
  registry.forget()
  const { page, expectGood } = await app.open({ key: manager, page: '#/models?pull=1' })
  await page.getByLabel('Model', { exact: true }).fill(name())
  await page.getByLabel('Connect without TLS').check()
  await page.keyboard.press('Enter')
  await page.getByText(`Pulled ${name()}.`).waitFor()

  await page.getByRole('button', { name: `Delete ${name()}:latest` }).click()
  await expectGood('models-delete')
  await page.getByRole('button', { name: 'Delete model' }).click()

  await page.getByText(`Deleted ${name()}:latest.`).waitFor()
  await expect
    .poll(async () => (await app.llm.models.list()).map(({ name }) => name))
    .toEqual(['tiny:latest'])
})

test('a failed pull says why', async () => {
  const { page } = await app.open({ key: manager, page: '#/models?pull=1' })

  await page.getByLabel('Model', { exact: true }).fill('elsewhere.example/library/small')
  await page.keyboard.press('Enter')

  await page
    .getByRole('alert')
    .getByText('registry "elsewhere.example" is not allowed on this server')
    .waitFor()
})

test('a model is loaded for a chosen time, and unloaded', async () => {
  const { page, expectGood } = await app.open({ key: manager, page: '#/models' })

  await page.getByRole('button', { name: 'Load tiny:latest' }).click()
  await page.getByLabel('Keep in memory').selectOption('Until someone unloads it')
  await page.getByRole('button', { name: 'Load', exact: true }).click()
  const loaded = page.getByRole('table', { name: 'Models in memory' })
  await loaded.getByText('Never').waitFor()
  await loaded.getByText('CPU').or(loaded.getByText('Graphics card')).first().waitFor()
  await expectGood('models-loaded')
  await loaded.getByRole('link', { name: 'tiny:latest' }).click()
  await page.getByRole('button', { name: 'Unload tiny:latest' }).waitFor()
  expect(await page.getByRole('button', { name: 'Load tiny:latest', exact: true }).count()).toBe(0)
  await page.goBack()
  await page.getByRole('button', { name: 'Unload tiny:latest' }).click()

  await page.getByText('No model is in memory.').waitFor()
  expect(app.llm.loaded()).toEqual([])
})

test('a model is created from a Modelfile, whose mistakes have a line', async () => {
  const { page, expectGood } = await app.open({ key: manager, page: '#/models/show?model=tiny:latest' })

  await page.getByRole('link', { name: 'Create model from it' }).click()
  await page.getByLabel('Name').fill('terse')
  await page.getByLabel('Modelfile').fill('FROM tiny\nSISTEM x\n')
  await page.getByRole('button', { name: 'Create model' }).click()
  await page.getByText('(line 2): command must be one of').waitFor()
  await expectGood('models-create')
  await page.getByLabel('Modelfile').fill('FROM tiny\nSYSTEM You are terse.\n')
  await page.getByRole('button', { name: 'Create model' }).click()

  await page.getByRole('heading', { name: 'System prompt' }).waitFor()
  await expectGood('models-show')
  expect((await app.llm.models.get('terse')).defaults?.system).toBe('You are terse.')
  // A link to a chat chooses its model, whatever the viewer chose before.
  await page.getByRole('link', { name: 'Playground' }).click()
  await page.getByLabel('Model').selectOption('tiny:latest (built in)')
  await page.getByRole('link', { name: 'Models' }).click()
  await page.getByRole('link', { name: 'Chat with terse:latest' }).click()
  expect(await page.getByLabel('Model').inputValue()).toBe('terse:latest')
  await app.llm.models.delete('terse')
})

test('a viewer without the scope models sees models, and why nothing can be changed, on a phone in the dark', async () => {
  const { page, expectGood } = await app.open({
    key: { scopes: ['inference'] },
    page: '#/models',
    width: 360,
    colorScheme: 'dark',
  })

  await page.getByRole('table', { name: 'Models on disk' }).getByText('tiny:latest').waitFor()
  await page.getByText('log in with a key that has the scope models').waitFor()
  await expectGood('models-viewer-phone-dark')
  expect(await page.getByRole('button', { name: /Pull|Load|Delete/ }).count()).toBe(0)
})
