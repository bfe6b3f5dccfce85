/** The pages in the order in which a stranger reads them. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { DefaultTheme } from 'vitepress'
import { sitePath } from './pages.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Each section: its folder of `docs/`, and the pages that come first. The others of the folder follow by their titles. */
const sections: readonly {
  readonly text: string
  readonly folder: string
  readonly pages: readonly string[]
}[] = [
  {
    text: 'Start',
    folder: 'start',
    pages: ['installation', 'express', 'koa', 'nest', 'fastify', 'command-line', 'choosing-a-model'],
  },
  {
    text: 'Guides',
    folder: 'guides',
    pages: [
      ...['mounting', 'streaming', 'structured-output', 'tools', 'embeddings', 'prompt-cache'],
      ...['in-process', 'ai-sdk', 'models'],
      ...['authentication', 'keys', 'rate-limits', 'spending-limits', 'usage', 'batches', 'interceptors'],
      ...['testing', 'observability', 'several-machines', 'several-engines', 'upstreams', 'fleet'],
    ],
  },
  {
    text: 'Compatibility',
    folder: 'compatibility',
    pages: ['ollama', 'openai', 'anthropic', 'clients', 'request-fields', 'openai-cases', 'anthropic-cases'],
  },
  {
    text: 'Operations',
    folder: 'operations',
    pages: [
      'deployment',
      'deploy/index',
      'health',
      'metrics',
      'tracing',
      'logging',
      'console',
      'state',
      'backup',
    ],
  },
  {
    text: 'Migration',
    folder: 'migration',
    pages: ['ollama', 'litellm', 'llama-server', 'express-rate-limit'],
  },
  {
    text: 'Reference',
    folder: 'reference',
    pages: [...['options', 'environment', 'errors', 'command-line', 'command-help', 'http-api', 'admin-api']],
  },
]

export const sidebar = (): DefaultTheme.SidebarItem[] => [
  ...sections.flatMap(({ text, folder, pages }, index) => {
    const items = pagesOf(folder, pages)
    return items.length === 0 ? [] : [{ text, items, collapsed: index > 1 }]
  }),
  {
    text: 'Exported types',
    collapsed: true,
    items: readdirSync(`${root}docs/reference/api`, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md') && name !== 'index.md')
      .sort()
      .map((name) => toItem(`docs/reference/api/${name.slice(0, -3).replaceAll('\\', '/')}`)),
  },
  ...['docs/security', 'docs/troubleshooting'].filter(exists).map(toItem),
  {
    text: 'Examples',
    collapsed: true,
    items: ['README', ...readdirSync(`${root}examples`).map((name) => `${name}/README`)]
      .map((page) => `examples/${page}`)
      .filter(exists)
      .map(toItem),
  },
  {
    text: 'Project',
    collapsed: true,
    items: [
      ...['CHANGELOG', 'ARCHITECTURE', 'CONTRIBUTING', 'SECURITY'].filter(exists).map(toItem),
      { text: 'Decisions', collapsed: true, items: pagesOf('decisions', []) },
    ],
  },
]

/** Pages of a folder: the named ones that exist, then the others, and folders such as `reference/api` that have an index. */
function pagesOf(folder: string, first: readonly string[]): DefaultTheme.SidebarItem[] {
  if (!existsSync(`${root}docs/${folder}`)) return []
  const names = readdirSync(`${root}docs/${folder}`).flatMap((name) =>
    name.endsWith('.md') ? [name.slice(0, -3)] : [`${name}/index`, `${name}/README`],
  )
  const others = names
    .filter((name) => !first.includes(name))
    .map((name) => `docs/${folder}/${name}`)
    .filter(exists)
    .map(toItem)
    .sort((one, other) => (one.text ?? '').localeCompare(other.text ?? ''))
  return [
    ...first
      .map((name) => `docs/${folder}/${name}`)
      .filter(exists)
      .map(toItem),
    ...others,
  ]
}

const exists = (page: string): boolean => existsSync(`${root}${page}.md`)

/** Returns a link to a page, with its first heading. */
function toItem(page: string): DefaultTheme.SidebarItem {
  const [, title = page] = /^# (.*)$/m.exec(readFileSync(`${root}${page}.md`, 'utf8')) ?? []
  return { text: title.replaceAll('`', ''), link: `/${sitePath(`${page}.md`).replace(/(index)?\.md$/, '')}` }
}
