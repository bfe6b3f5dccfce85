/** A process in which native code fills templates: a bad one ends or hangs it, and with it nobody's answer. */
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
