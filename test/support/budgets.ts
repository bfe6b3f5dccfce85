import {
  CpuBudget,
  TenantCpu,
} from '../../packages/core/src/engine/local/model-process/workers/cpu-budget.ts'

/** A budget of CPU time for a call of one tenant. */
export const budgetOf = (
  owner: Partial<ConstructorParameters<typeof CpuBudget>[1]> = {},
  tenants = new TenantCpu(),
): CpuBudget =>
  new CpuBudget(tenants, {
    ...{ tenant: '', weight: 1, background: false, signal: new AbortController().signal },
    ...owner,
  })
