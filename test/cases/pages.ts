/** Renders a table of cases as a page of the documentation. */
import type { Case, CaseTable, Proof, Result } from './cases.ts'

export function pageOf(title: string, apiPage: string, cases: CaseTable): string {
  const all = Object.values(cases).flatMap((group) => Object.values(group))
  return `# ${title}

These cases are what clients of the API depend on, and the tests that prove them. [The page of the API](${apiPage})
describes its fields. This page is generated from \`test/cases\`: \`npx vitest run --project test test/cases -u\`.

${summaryOf(all)}

*Green* means that the API behaves as the vendor's. *Differs* means another behavior, for the reason that follows. A
*refused* request gets an error that names the field. Ids such as
\`openai:chat:n-range\` are rows of the [conformance tests](../../test/conformance), which run on each adapter.

${Object.entries(cases).map(sectionOf).join('\n')}`
}

function summaryOf(cases: readonly Case[]): string {
  const kinds = ['green', 'differs', 'refused'] as const
  const counts = kinds.map(
    (kind) => `| ${kind} | ${cases.filter(({ result }) => result.kind === kind).length} |`,
  )
  return ['| result | cases |', '| --- | --- |', ...counts, `| all | ${cases.length} |`].join('\n')
}

const sectionOf = ([group, cases]: readonly [string, CaseTable[string]]): string =>
  `## ${group}

| case | behavior | result | tests |
| --- | --- | --- | --- |
${Object.entries(cases).map(rowOf).join('\n')}
`

const rowOf = ([number, { behavior, result, tests }]: readonly [string, Case]): string =>
  `| ${number} | ${cell(behavior)} | ${cell(resultOf(result))} | ${tests.map(linkTo).join('<br>')} |`

function resultOf(result: Result): string {
  if (result.kind === 'green') return 'green'
  return `${result.kind}${result.kind === 'refused' ? `, ${result.part}` : ''}: ${result.why}`
}

const linkTo = (proof: Proof): string =>
  typeof proof === 'string' ? `\`${proof}\`` : `[${cell(nameOf(proof))}](../../${proof[0]})`

/** Name of a test. A title that is only a placeholder stands for all tests of the file. */
const nameOf = ([file, title]: readonly [string, string]): string =>
  /^(%s|\$\w+)$/.test(title) ? (file.split('/').at(-1) ?? file) : title

/** A text that breaks neither its cell nor the text of its link. */
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll(/[[\]]/g, '\\$&')
