/** The types of the tables of cases, and the helpers that build them. */
import type { RequirementId } from '../conformance/requirements.ts'

/** A row of the conformance table, or a test file, from the root of the repository, and the title of one of its tests. */
export type Proof = RequirementId | readonly [file: string, title: string]

export interface Case {
  /** What a client can rely on, in one sentence. */
  readonly behavior: string
  readonly tests: readonly Proof[]
  readonly result: Result
}

/**
 * `green`: as the API of the vendor has it. `differs`: another behavior, on purpose. `refused`: rejected with an error
 * that names the field.
 */
export type Result =
  | { readonly kind: 'green' }
  | { readonly kind: 'differs'; readonly why: string }
  | { readonly kind: 'refused'; readonly part: RefusedPart; readonly why: string }

/** What the server may refuse. */
export type RefusedPart = 'background' | 'hosted tools'

/** Cases by their numbers, in groups. */
export type CaseTable = Readonly<Record<string, Readonly<Record<number, Case>>>>

export const green = (behavior: string, ...tests: readonly Proof[]): Case => ({
  ...{ behavior, tests, result: { kind: 'green' } },
})

export const differs = (behavior: string, why: string, ...tests: readonly Proof[]): Case => ({
  ...{ behavior, tests, result: { kind: 'differs', why } },
})

export const refused = (
  behavior: string,
  part: RefusedPart,
  why: string,
  ...tests: readonly Proof[]
): Case => ({ behavior, tests, result: { kind: 'refused', part, why } })

/** Returns a function that names a test of this file by its title. */
export const testsOf =
  (file: string) =>
  (title: string): Proof => [file, title]
