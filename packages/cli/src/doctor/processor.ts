/** Checks the instruction sets and the cores that the engine uses. */
import { type MachineReport, readCpuQuota } from '@modelmount/core/machine'
import { type Finding, findingsOf, plural } from './finding.ts'

const { ok, warning } = findingsOf('processor')

/** Without these, llama.cpp computes several times as slowly. */
const fastFeatures: Readonly<Record<string, readonly string[]>> = {
  x64: ['AVX2', 'FMA', 'F16C'],
  arm64: ['NEON', 'DOTPROD'],
}

type WithProcessor = Pick<MachineReport, 'engine' | 'cpu'>

/** @param quota cores that the control group may use, see `readCpuQuota()` */
export function checkProcessor(
  { engine, cpu: { cores, threads } }: WithProcessor,
  quota = readCpuQuota(),
): readonly Finding[] {
  const finding =
    quota !== undefined && quota < threads
      ? warning(
          `The container may use ${quota} of ${plural(cores, 'core')}, but a model computes with up to ${plural(threads, 'thread')}.`,
          `modelmount serve --threads ${Math.max(1, Math.floor(quota))}`,
        )
      : ok(`${plural(cores, 'core')}, up to ${plural(threads, 'thread')} for a model`)
  return 'problem' in engine ? [finding] : [finding, checkFeatures(engine.cpuFeatures)]
}

function checkFeatures(features: readonly string[]): Finding {
  const missing = (fastFeatures[process.arch] ?? []).filter((name) => !features.includes(name))
  return missing.length === 0
    ? ok(`The engine uses ${features.join(', ')}`)
    : warning(
        `Models are slow, since the engine cannot use ${missing.join(', ')}.`,
        'Use a processor with these instructions. In a virtual machine, pass the processor of the host through.',
      )
}
