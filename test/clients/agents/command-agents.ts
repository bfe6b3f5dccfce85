/** Agents that run as commands, with the settings of docs/compatibility/clients.md. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { codeBlocks } from '../../support/pages.ts'

export interface Question {
  readonly prompt: string
  /** Base URL of the server, without a trailing slash. */
  readonly url: string
  /** Path of an image. */
  readonly image?: string
  /** Whether this is a question in the last session of the folder. */
  readonly resumes?: boolean
  /**
   * Whether the agent gets short instructions, for the context of the built-in model, and no tools that write or run
   * anything, because that model calls them at random.
   */
  readonly isShort?: boolean
  /** @default the model of the settings */
  readonly model?: string | undefined
}

export interface CommandAgent {
  /** The package that contains its version. */
  readonly packageName: string
  readonly name: string
  /** Names of its tools for the model, and the arguments of the shell. */
  readonly tools: { readonly weather: string; shell(command: string): string }
  /** How the model gets an image. Without it, the agent sends none. */
  readonly image?: 'prompt' | 'tool'
  /** A model whose name makes the agent offer its tool for patches. */
  readonly patchModel?: string
  /** How many other hosts it asks for, despite its settings. */
  readonly otherHosts: number
  /** Writes its settings to the folder, asks, and returns the answer. */
  ask(question: Question, place: Place): Promise<string>
}

export interface Place {
  /** The folder with the installed agents. */
  readonly project: string
  /** A folder that is the agent's home and working folder. */
  readonly folder: string
  /** Environment variables that keep the agent on this machine. */
  readonly environment: Readonly<Record<string, string>>
}

const page = 'docs/compatibility/clients.md'
const instructions = 'You are a coding agent.'
const pocket = ({ project }: Place): string => join(project, 'pocket.mjs')

/** Returns the settings below a heading of the page, for another URL. */
function settingsOf(heading: string, url: string): string {
  const block = codeBlocks(page).find((one) => one.heading === heading)
  if (!block?.code.includes('http://localhost:11434'))
    throw new Error(`${page} has no settings of ${heading}.`)
  return block.code.replaceAll('http://localhost:11434', url)
}

/** Runs a command of the agent in its folder, and returns its output. */
async function run(
  command: string,
  args: readonly string[],
  { folder, environment }: Place,
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  const env = { PATH: process.env.PATH, HOME: folder, ...environment, ...more }
  const running = promisify(execFile)(command, args, { cwd: folder, env, timeout: 60_000 })
  running.child.stdin?.end()
  return (await running).stdout
}

/** A line that Codex or opencode prints. */
interface Line {
  readonly item?: { readonly type: string; readonly text?: string }
  readonly part?: { readonly text?: string }
}

const jsonLines = (output: string): readonly Line[] =>
  output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))

const shellOf = (name: string, key: string, more: object) => (command: string) =>
  `call ${name} ${JSON.stringify({ [key]: command, ...more })}`

export const codex: CommandAgent = {
  ...{ packageName: '@openai/codex', name: 'Codex', image: 'prompt', patchModel: 'gpt-5.5', otherHosts: 0 },
  tools: { weather: 'mcp__pocket__weather', shell: shellOf('exec_command', 'cmd', {}) },
  ask: async ({ prompt, url, image, resumes, isShort, model }, place) => {
    const mcp = `[mcp_servers.pocket]\ncommand = "node"\nargs = [${JSON.stringify(pocket(place))}]\n`
    await writeFile(join(place.folder, 'config.toml'), `${settingsOf('Codex', url)}\n${mcp}`)
    await writeFile(join(place.folder, 'short.md'), instructions)
    const short = [
      ...[`model_instructions_file=${join(place.folder, 'short.md')}`, 'agents.enabled=false'],
      ...['features.shell_tool=false', 'features.unified_exec=false'],
    ]
    const options = [
      ...['--json', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'],
      ...(isShort ? short.flatMap((setting) => ['-c', setting]) : []),
      ...(image ? ['-i', image] : []),
      ...(model ? ['-m', model] : []),
    ]
    const args = ['exec', ...(resumes ? ['resume', '--last'] : []), ...options, '--', prompt]
    const command = join(place.project, 'node_modules/.bin/codex')
    const lines = jsonLines(await run(command, args, place, { CODEX_HOME: place.folder }))
    const items = lines.flatMap(({ item }) => item ?? [])
    return items.findLast(({ type }) => type === 'agent_message')?.text ?? JSON.stringify(lines)
  },
}

export const opencode: CommandAgent = {
  // A package registry, for the package of its plugins.
  ...{ packageName: 'opencode-ai', name: 'opencode', otherHosts: 1 },
  tools: { weather: 'pocket_weather', shell: shellOf('bash', 'command', { description: 'Prints.' }) },
  ask: async ({ prompt, url, resumes, isShort }, place) => {
    const settings = {
      ...JSON.parse(settingsOf('opencode', url)),
      mcp: { pocket: { type: 'local', command: ['node', pocket(place)] } },
      ...(isShort && { agent: { build: { prompt: instructions } }, tools: { '*': false, read: true } }),
    }
    await writeFile(join(place.folder, 'opencode.json'), JSON.stringify(settings))
    await writeFile(join(place.folder, 'prompt.txt'), prompt)
    // opencode writes an argument with spaces in quotes, and reads the prompt from its input as it is.
    const binary = join(
      place.project,
      'node_modules',
      `opencode-${process.platform}-${process.arch}`,
      'bin/opencode',
    )
    const script = `exec "$0" run --format json ${resumes ? '--continue' : ''} < prompt.txt`
    const lines = jsonLines(
      await run('sh', ['-c', script, binary], place, {
        ...{ OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_LSP_DOWNLOAD: '1' },
        ...{ XDG_CONFIG_HOME: place.folder, XDG_DATA_HOME: place.folder, XDG_CACHE_HOME: place.folder },
      }),
    )
    return lines.flatMap(({ part }) => part?.text ?? []).join('')
  },
}

export const continueDev: CommandAgent = {
  ...{ packageName: '@continuedev/cli', name: 'Continue', otherHosts: 0 },
  tools: { weather: 'weather', shell: shellOf('Bash', 'command', {}) },
  ask: async ({ prompt, url, resumes, isShort }, place) => {
    const mcp = `mcpServers:\n  - name: pocket\n    command: node\n    args: [${JSON.stringify(pocket(place))}]\n`
    await writeFile(join(place.folder, 'config.yaml'), settingsOf('Continue', url) + mcp)
    const mode = isShort ? '--readonly' : '--auto'
    const args = ['--config', 'config.yaml', mode, ...(resumes ? ['--resume'] : []), '-p', prompt]
    const command = join(place.project, 'node_modules/.bin/cn')
    const env = { CONTINUE_GLOBAL_DIR: place.folder, CONTINUE_TELEMETRY_ENABLED: '0', FORCE_NO_TTY: 'true' }
    return (await run(command, args, place, env)).trim()
  },
}

export const claudeCode: CommandAgent = {
  ...{
    packageName: '@anthropic-ai/claude-agent-sdk',
    name: 'Claude Agent SDK',
    image: 'tool',
    otherHosts: 0,
  },
  tools: { weather: 'mcp__pocket__weather', shell: shellOf('Bash', 'command', { description: 'Prints.' }) },
  ask: async ({ prompt, url, resumes, isShort }, place) => {
    const lines = settingsOf('Claude Code', url).trim().split('\n')
    const settings = Object.fromEntries(lines.map((line) => line.split('=', 2)))
    const options = {
      ...{ cwd: place.folder, maxTurns: 4, settingSources: [], continue: resumes },
      ...{ permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true },
      mcpServers: { pocket: { command: 'node', args: [pocket(place)] } },
      ...(isShort && { systemPrompt: instructions, tools: ['Read'] }),
    }
    const args = [join(place.project, 'claude.mjs'), JSON.stringify(options), prompt]
    // As root, it runs tools without asking only in a sandbox.
    const env = { ...settings, CLAUDE_CONFIG_DIR: join(place.folder, '.claude'), IS_SANDBOX: '1' }
    return run(process.execPath, args, place, env)
  },
}
