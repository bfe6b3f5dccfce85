/** The entry point `@modelmount/core/machine`: what the engine finds on this machine. */

export { readCpuQuota } from '../engine/local/ipc/available-cores.ts'
export type {
  MissingEngine,
  RamDisk,
  ReportedEngine,
  RunningEngine,
} from '../engine/local/ipc/machine-report.ts'
export type { RuntimeDirProblem } from '../engine/local/ipc/runtime-dir.ts'
export { findDamagedManifests } from './damaged-manifests.ts'
export { inspectMachine, type MachineReport } from './inspect-machine.ts'
export { type RegistryReport, reachRegistries } from './reach-registries.ts'
