/** Opens calls over time. Its code is loaded when there is a database, so that an app without one starts faster. */
import { createAbsentDatabase } from '../../storage/absent-database.ts'
import type { Database } from '../../storage/database.ts'
import { migrate } from '../../storage/migrations.ts'
import type { TenantData } from '../tenants/tenant-data.ts'
import type { TrafficRecorder } from './traffic-recorder.ts'
import type { TrafficQuery, TrafficRow } from './traffic-report.ts'

export interface OpenedTraffic {
  /** Absent without a database. */
  readonly recorder: TrafficRecorder | undefined
  readonly report: (query?: TrafficQuery) => Promise<readonly TrafficRow[]>
  readonly data: readonly TenantData[]
}

/**
 * @param namesOf returns the current names of keys, by id
 * @param onError called when counts cannot be written
 */
export async function openTraffic(
  database: Database | undefined,
  namesOf: (ids: readonly string[]) => Promise<ReadonlyMap<string, string>>,
  onError: (cause: unknown) => void,
): Promise<OpenedTraffic> {
  if (!database)
    return {
      recorder: undefined,
      report: () => createAbsentDatabase('llm.traffic').query(''),
      data: [],
    }
  // One after the other: Jest fails to load modules in parallel that share a file of the bundle.
  const { trafficTables } = await import('./tables.ts')
  const { TrafficRecorder } = await import('./traffic-recorder.ts')
  const { queryTraffic } = await import('./traffic-report.ts')
  const { TrafficData } = await import('./traffic-data.ts')
  await migrate(database, 'traffic', trafficTables)
  const recorder = new TrafficRecorder(database, onError)
  return {
    recorder,
    report: async (query = {}) => {
      // What this process has counted is part of its report.
      await recorder.write()
      const rows = await queryTraffic(database, query)
      if (query.by !== 'key') return rows
      const names = await namesOf([...new Set(rows.map(({ group = '' }) => group))])
      return rows.map((row) => {
        const name = names.get(row.group ?? '')
        return { ...row, ...(name !== undefined && { name }) }
      })
    },
    data: [new TrafficData(database, () => recorder.write())],
  }
}
