// A model process on a machine with a graphics card of 100 MB. Only the library's answers about the card are
// simulated. A model takes 60 MB on it, and each sequence 10 MB. Files in `CARD` are what processes have allocated.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { GgufInsights, GgufInsightsConfigurationResolver, Llama } from 'node-llama-cpp'

const [mb, total, folder] = [1e6, 100e6, process.env.CARD]
mkdirSync(folder, { recursive: true })

/** Allocated bytes of the processes that run. The driver frees the memory of the others. */
const readUsed = () =>
  readdirSync(folder)
    .filter((pid) => isAlive(Number(pid)))
    .reduce((sum, pid) => sum + Number(readFileSync(join(folder, pid), 'utf8')), 0)

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

Llama.prototype.getVramState = async () => {
  const used = readUsed()
  return { total, used, free: total - used, unifiedSize: 0 }
}
Object.defineProperty(Llama.prototype, 'vramPaddingSize', { get: () => 0 })

const { estimateModelResourceRequirementsV2, estimateContextResourceRequirementsV2 } = GgufInsights.prototype
GgufInsights.prototype.estimateModelResourceRequirementsV2 = async function (options) {
  const { cpuRam } = await estimateModelResourceRequirementsV2.call(this, options)
  return { cpuRam, gpuVram: options.gpuLayers > 0 ? 60 * mb : 0 }
}
GgufInsights.prototype.estimateContextResourceRequirementsV2 = async function (options) {
  const { cpuRam } = await estimateContextResourceRequirementsV2.call(this, options)
  return { cpuRam, gpuVram: options.modelGpuLayers > 0 ? options.sequences * 10 * mb : 0 }
}
GgufInsightsConfigurationResolver.prototype.resolveModelGpuLayersV2 = async function (wanted, options) {
  if (typeof wanted === 'number') return { gpuLayers: wanted, useMmap: true }
  const { free } = options.getVramState ? await options.getVramState() : { free: total - readUsed() }
  return { gpuLayers: free >= 70 * mb ? this.ggufInsights.totalLayers : 0, useMmap: true }
}
GgufInsightsConfigurationResolver.prototype.resolveContextContextSize = async (size) => size

const { loadModel } = Llama.prototype
Llama.prototype.loadModel = async function (options) {
  const model = await loadModel.call(this, options)
  // A load allocates some time after it has measured the card.
  await delay(Number(process.env.CARD_DELAY))
  if (options.gpuLayers > 0) {
    if (readUsed() + 70 * mb > total) throw new Error('cudaMalloc failed: out of memory')
    writeFileSync(join(folder, String(process.pid)), String(70 * mb))
  }
  return model
}

await import('@modelmount/core/model-process')
