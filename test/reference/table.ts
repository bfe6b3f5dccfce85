/** Markdown of the generated pages. */

/** Renders rows as a Markdown table. The first row has the names of the columns. */
export function table(...rows: readonly (readonly string[])[]): string {
  const [head = [], ...body] = rows
  return [head, head.map(() => '---'), ...body]
    .map(
      (cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`,
    )
    .join('\n')
}

export const code = (text: string | number): string => `\`${text}\``

export const block = (language: string, text: string): string =>
  ['```', language, '\n', text.trimEnd(), '\n```'].join('')

const origin = 'This page is generated from the code: `npx vitest run --project test test/reference -u`.'

/** Joins paragraphs, tables and blocks to a page. */
export const page = (...parts: readonly string[]): string => `${[...parts, origin].join('\n\n')}\n`
