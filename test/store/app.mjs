/** An app process that creates, copies and deletes models in a folder: `node app.mjs FOLDER NAME ROUNDS`. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createLlm } from '@modelmount/core'
import { modelPath } from '@modelmount/tiny-model'

const [, , folder, name, rounds] = process.argv
const llm = await createLlm({ models: folder })
const weights = readFileSync(modelPath)
const digest = `sha256:${createHash('sha256').update(weights).digest('hex')}`
const { signal } = new AbortController()

for (let round = 0; round < Number(rounds); round++) {
  // All apps use the same weights. Each model has another system message.
  await llm.models.blobs.write(digest, once(), signal)
  const spec = { name: `${name}-${round}`, files: { 'model.gguf': digest }, system: `${name} ${round}` }
  for await (const _step of llm.models.create(spec));
  await llm.models.copy(spec.name, 'shared')
  if (round % 2) await llm.models.delete(spec.name)
}
await llm.close()

async function* once() {
  yield weights
}
