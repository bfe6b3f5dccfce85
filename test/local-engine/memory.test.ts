/** A call whose context exceeds the memory of the machine fails with an error, and other calls work. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLlm, type Llm } from '@modelmount/core'
import { afterEach, expect, test } from 'vitest'
import { withMetadata } from '../support/broken-model.ts'
import { emptyFolder } from '../support/empty-folder.ts'

const folder = emptyFolder()
let llm: Llm

afterEach(() => llm.close())

const call = { signal: new AbortController().signal }

async function ask(model: string, contextSize: number): Promise<number> {
  const input = { kind: 'text', prompt: ['Hello'] } as const
  const generation = await llm.generate({ model, input, maxTokens: 3, load: { contextSize } }, call)
  for await (const event of generation) if (event.type === 'end') return event.usage.outputTokens
  throw new Error('The answer did not end.')
}

test.runIf(process.platform === 'linux').each<[what: string, model: string, contextSize: number]>([
  ['slightly larger than the free memory', 'tiny', 8_192],
  ['larger than the memory of any machine', 'wide', 2 ** 24],
])(
  'a context %s gives an LlmError each time, and a call with a small context works',
  async (_what, model, contextSize) => {
    await writeFile(join(folder, 'wide.gguf'), withMetadata('llama.context_length', 2 ** 30))
    const modelProcessPath = fileURLToPath(new URL('./little-memory.mjs', import.meta.url))
    llm = await createLlm({ models: folder, local: { modelProcessPath } })

    for (const _time of ['first', 'second']) {
      const error = await ask(model, contextSize).catch((cause: unknown) => cause)

      expect(error).toMatchObject({ name: 'LlmError', code: expect.not.stringContaining('internal') })
    }

    expect(await ask('tiny', 256)).toBe(3)
  },
)
