/** Renders docs/reference/environment.md: the environment variables, and who reads them. */
import { variables } from '../../packages/cli/src/environment.ts'
import { code, page, table } from './table.ts'

const readers = {
  serve: '`serve`',
  client: 'commands that call a server',
  run: '`run`',
  database: 'commands that open a database',
} as const

/** Variables that every app reads, although no option stands for them. */
const readByApps: ReadonlySet<string> = new Set([
  ...['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY', 'XDG_RUNTIME_DIR', 'PGPASSWORD'],
])

export const renderEnvironmentPage = (): string =>
  page(
    '# Environment variables',
    'An option of `createLlm()`, a flag and the [configuration file](command-line.md#the-configuration-file) come before the variable. An empty variable counts as not set.',
    table(
      ['variable', 'meaning', 'read by', 'option'],
      ...Object.entries(variables).map(([name, { meaning, readers: by, option }]) => [
        code(name),
        meaning.replaceAll(/<(\w+)>/g, '`<$1>`'),
        [
          ...(option === undefined && !readByApps.has(name) ? [] : ['`createLlm()`']),
          ...by.map((reader) => readers[reader]),
        ].join(', '),
        option === undefined ? '' : `[${code(option)}](options.md)`,
      ]),
    ),
    'A model process inherits only [some variables](../operations/deployment.md#environment-variables) of the app.',
  )
