/** The table in `docs/guides/upstreams.md` of what upstream APIs cannot carry. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../../packaging/npm.ts'
import { type NotCarried, type Reason, reasons } from './not-carried.ts'
import { notOverAnthropic } from './not-over-anthropic.ts'
import { notOverModelmount } from './not-over-modelmount.ts'
import { notOverOllama } from './not-over-ollama.ts'
import { notOverOpenAI } from './not-over-openai.ts'

export const pageFile = join(root, 'docs/guides/upstreams.md')

const lists: readonly NotCarried[] = [notOverModelmount, notOverOpenAI, notOverAnthropic, notOverOllama]

/** Returns the page with the table of the lists. The text around the table stays as it is. */
export function renderPage(): string {
  const page = readFileSync(pageFile, 'utf8')
  const [table] = /^\| what differs \|.*\n(?:\|.*\n)+/m.exec(page) ?? []
  if (table === undefined) throw new Error('docs/guides/upstreams.md has no table of differences')
  return page.replace(table, () => renderTable())
}

function renderTable(): string {
  const countsOf = (reason: Reason) => lists.map((list) => list[reason]?.length ?? 0)
  const names = Object.keys(reasons) as readonly Reason[]
  const total = lists.map((_, index) => names.reduce((sum, name) => sum + (countsOf(name)[index] ?? 0), 0))
  return [
    "| what differs | Modelmount's API | OpenAI's API | Anthropic's API | Ollama's API |",
    '| --- | ---: | ---: | ---: | ---: |',
    ...names.map((name) => `| ${reasons[name]} | ${countsOf(name).join(' | ')} |`),
    `| Rows that differ | ${total.join(' | ')} |`,
    '',
  ].join('\n')
}
