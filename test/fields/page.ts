/** Renders the table of request fields as a page of the documentation. */
import type { Fields } from './fields.ts'

export const pageOf = (routes: Readonly<Record<string, Fields>>): string => `# Request fields

What becomes of each field that clients of OpenAI, Anthropic, Ollama, vLLM and llama.cpp's server know. A field that would
change the answer is either *taken* or *refused* with a 400 that names it. The others are *ignored*, for the reason given.
Unlisted fields are ignored. This page is generated from \`test/fields\`: \`npx vitest run --project test test/fields -u\`.

${Object.entries(routes).map(sectionOf).join('\n')}`

function sectionOf([route, fields]: readonly [string, Fields]): string {
  const taken = namesOf(fields, (field) => field === 'taken')
  const refused = Object.entries(fields).flatMap(([name, field]) =>
    typeof field === 'object' && 'refused' in field
      ? [`\`${name}\` (\`${JSON.stringify(field.refused)}\`)`]
      : [],
  )
  const reasons = new Map<string, string[]>()
  for (const [name, field] of Object.entries(fields))
    if (typeof field === 'object' && 'ignored' in field)
      reasons.set(field.ignored, [...(reasons.get(field.ignored) ?? []), `\`${name}\``])
  const rows = [...reasons].map(([reason, names]) => `| ignored | ${names.join(', ')} | ${reason} |`)
  return `## ${route}

| result | fields | |
| --- | --- | --- |
| taken | ${taken.join(', ')} | |
${refused.length > 0 ? `| refused | ${refused.join(', ')} | The value in brackets is one that is refused. |\n` : ''}${rows.join('\n')}
`
}

const namesOf = (fields: Fields, matches: (field: Fields[string]) => boolean): readonly string[] =>
  Object.entries(fields).flatMap(([name, field]) => (matches(field) ? [`\`${name}\``] : []))
