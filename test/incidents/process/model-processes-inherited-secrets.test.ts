/** Model processes inherited each secret in the environment of the host app, and outlived the app with them. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLlm } from '@modelmount/core'
import { afterAll, expect, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { forgedPreTokenizer } from '../../support/forgeries.ts'
import { childrenOf, hasProc, until } from '../../support/processes.ts'

/** As in the environment of a common app. The values are found wherever they go. */
const secrets = {
  DATABASE_URL: 'postgres://app:secret-of-the-app@db/app',
  AWS_SECRET_ACCESS_KEY: 'secret-of-the-app',
  OPENAI_API_KEY: 'secret-of-the-app',
  NVIDIA_API_KEY: 'secret-of-the-app',
  HF_TOKEN: 'secret-of-the-app',
  MODELMOUNT_API_KEY: 'secret-of-the-app',
  OLLAMA_API_KEY: 'secret-of-the-app',
  LLAMA_API_KEY: 'secret-of-the-app',
  NODE_AUTH_TOKEN: 'secret-of-the-app',
  NPM_TOKEN: 'secret-of-the-app',
  npm_config__authToken: 'secret-of-the-app',
  HTTPS_PROXY: 'http://user:secret-of-the-app@127.0.0.1:9',
  SSH_AUTH_SOCK: '/tmp/secret-of-the-app',
}
const needed = {
  CUDA_VISIBLE_DEVICES: '0',
  HIP_VISIBLE_DEVICES: '0',
  ROCR_VISIBLE_DEVICES: '0',
  VK_ICD_FILENAMES: '/none.json',
  GGML_VK_VISIBLE_DEVICES: '0',
  LC_ALL: 'C.UTF-8',
  LD_LIBRARY_PATH: '/none',
}
Object.assign(process.env, secrets, needed, { APP_TRACE: 'on', APP_TRACE_TOKEN: 'secret-of-the-app' })

const models = emptyFolder()
/** Its long words are split in a child process, since native code may crash. */
writeFileSync(join(models, 'words.gguf'), forgedPreTokenizer('gpt-4o'))

const start = (environment?: readonly string[]) =>
  createLlm({ models, local: { contextSize: 512, ...(environment && { environment }) } })
const llm = await start()
afterAll(() => llm.close())

/** The environment that a process got when it started. */
const environmentOf = (processId: number): Readonly<Record<string, string>> =>
  Object.fromEntries(
    readFileSync(`/proc/${processId}/environ`, 'utf8')
      .split('\0')
      .filter(Boolean)
      .map((entry) => {
        const at = entry.indexOf('=')
        return [entry.slice(0, at), entry.slice(at + 1)]
      }),
  )
/** The names of the variables with a secret. The values of a failed test would be in its log. */
const secretsIn = (environment: Readonly<Record<string, string>>): readonly string[] =>
  Object.keys(environment).filter((name) => environment[name]?.includes('secret-of-the-app'))
const processIdOf = (one: typeof llm): number => one.loaded()[0]?.processId ?? Number.NaN

test.runIf(hasProc)('a model process has the variables that it needs, and no secret', async () => {
  await llm.chat('Hello', { model: 'words', maxTokens: 2 })

  const environment = environmentOf(processIdOf(llm))

  expect(secretsIn(environment)).toEqual([])
  expect(environment).toMatchObject({
    ...needed,
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    XDG_RUNTIME_DIR: process.env.XDG_RUNTIME_DIR,
    UV_THREADPOOL_SIZE: '1',
  })
  expect(environment).not.toHaveProperty('NODE_OPTIONS')
  expect(environment).not.toHaveProperty('APP_TRACE')
})

test.runIf(hasProc)('the children of a model process have no secret either', async () => {
  const processId = processIdOf(llm)
  let children: readonly number[] = []

  const counted = llm.tokenize({ model: 'words', text: 'a'.repeat(30_000) })
  await until(() => {
    children = childrenOf(processId)
    return children.length > 0
  }, 5_000)
  const environments = children.map(environmentOf)
  await counted

  expect(environments).not.toEqual([])
  expect(environments.flatMap(secretsIn)).toEqual([])
})

test.runIf(hasProc)('the app lists further variables by name', async () => {
  const other = await start(['APP_TRACE', 'NOT_SET'])
  try {
    await llm.unload(llm.loaded()[0]?.name ?? '')
    await other.chat('Hello', { model: 'words', maxTokens: 2 })

    const environment = environmentOf(processIdOf(other))

    expect(environment).toMatchObject({ APP_TRACE: 'on' })
    expect(secretsIn(environment)).toEqual([])
  } finally {
    await other.close()
  }
})
