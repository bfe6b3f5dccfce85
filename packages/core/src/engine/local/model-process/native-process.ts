/**
 * Child process that renders templates with llama.cpp, since a bad template can crash or hang its process.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { openNativeTemplates } from './llama/native-templates.ts'
import { maxPromptLength, type NativeJob, type NativeResult } from './render-job.ts'

const memoryMb = Number(process.argv[2])
const guard = new Worker(new URL('./native-guard-worker.js', import.meta.url), { workerData: memoryMb })
const ready = once(guard, 'message').then(openNativeTemplates)

process.on('message', (job: NativeJob) => {
  void fill(job).then((result) => process.send?.(result))
})

async function fill({ source, variables }: NativeJob): Promise<NativeResult> {
  try {
    const text = (await ready)?.(source, variables)
    return text === undefined || text.length > maxPromptLength ? {} : { text }
  } catch {
    return {}
  }
}
