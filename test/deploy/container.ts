/**
 * Runs a Dockerfile without a container runtime: each stage is a folder, and each command runs with this folder as
 * its root, in namespaces of its own. The base image is made of Debian's packages and of Node.js from npm.
 *
 * Not tried: the base image of the registry, layers and their cache, limits of memory and processors, and a network of
 * its own. The commands use the network of this machine.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { type Instruction, parseDockerfile } from './dockerfile.ts'

/** Time limit for each command of a build. */
const commandTimeoutMs = 240_000

/** A stage, or the image, which is the last stage. */
export interface Image {
  readonly root: string
  readonly environment: Readonly<Record<string, string>>
  readonly folder: string
  readonly user: string
  readonly entryPoint: readonly string[]
  readonly command: readonly string[]
  readonly healthCheck: readonly string[]
}

interface Build {
  readonly context: string
  /** The folder for all stages. */
  readonly into: string
  /** The folder that stands for all base images. */
  readonly base: string
  /** Further variables of commands. They are not part of the image. */
  readonly environment: Readonly<Record<string, string>>
}

/** Certificates that the programs of Debian trust. */
export const certificates = 'etc/ssl/certs/ca-certificates.crt'

/** Makes a root folder of Debian with Node.js, npm and the user `node`, as the official images have them. */
export async function createBase(root: string, node: string): Promise<void> {
  await execute('debootstrap', ['--variant=minbase', '--include=ca-certificates', 'bookworm', root])
  cpSync(node, join(root, 'usr/local/bin/node'))
  const npm = dirname(dirname(realpathSync((await execute('which', ['npm'])).trim())))
  cpSync(npm, join(root, 'usr/local/lib/node_modules/npm'), { recursive: true })
  await execute('ln', ['-s', '../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/local/bin/npm')])
  await execute('chroot', [root, 'useradd', '--uid', '1000', '--create-home', 'node'])
  // The network of this machine may have a name server and certificates of its own.
  for (const file of ['etc/resolv.conf', certificates]) cpSync(join('/', file), join(root, file))
}

export async function buildImage(dockerfile: string, build: Build): Promise<Image> {
  const stages = new Map<string, Image>()
  let stage: Image | undefined
  for (const instruction of parseDockerfile(dockerfile)) {
    if (instruction.name === 'FROM') stage = await beginStage(instruction, stages, build)
    else if (stage) stage = await apply(instruction, stage, stages, build)
    const [name] = stages.size > 0 ? [...stages.keys()].slice(-1) : []
    if (stage && name !== undefined) stages.set(name, stage)
  }
  if (!stage) throw new Error('Expected a Dockerfile with FROM.')
  return stage
}

async function beginStage(
  { args }: Instruction,
  stages: Map<string, Image>,
  { base, into }: Build,
): Promise<Image> {
  const name = args[2] ?? `stage-${stages.size}`
  const root = join(into, name)
  await execute('cp', ['-a', base, root])
  const stage = {
    root,
    environment: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
    ...{ folder: '/', user: 'root', entryPoint: [], command: [], healthCheck: [] },
  }
  stages.set(name, stage)
  return stage
}

async function apply(
  { name, args, flags, text }: Instruction,
  stage: Image,
  stages: ReadonlyMap<string, Image>,
  build: Build,
): Promise<Image> {
  switch (name) {
    case 'WORKDIR': {
      const folder = resolve(stage.folder, args[0] ?? '')
      mkdirSync(join(stage.root, folder), { recursive: true })
      return { ...stage, folder }
    }
    case 'ENV':
      return { ...stage, environment: { ...stage.environment, ...Object.fromEntries(args.map(toPair)) } }
    case 'RUN': {
      const image = { ...stage, environment: { ...stage.environment, ...build.environment } }
      const [file = '', ...rest] = commandIn(image, ['/bin/sh', '-c', text])
      await execute(file, rest)
      return stage
    }
    case 'COPY':
      copy(args, stages.get(flags.from ?? '')?.root, stage, build.context)
      return stage
    case 'USER':
      return { ...stage, user: args[0] ?? 'root' }
    case 'ENTRYPOINT':
      return { ...stage, entryPoint: args }
    case 'CMD':
      return { ...stage, command: args }
    case 'HEALTHCHECK':
      return { ...stage, healthCheck: args.slice(1) }
    case 'EXPOSE':
    case 'VOLUME':
      return stage
    default:
      throw new Error(`Not a known instruction: ${name}`)
  }
}

const toPair = (text: string): readonly [string, string] => {
  const [name = '', ...value] = text.split('=')
  return [name, value.join('=')]
}

/** @param from root of the stage to copy from. Undefined for the context */
function copy(args: readonly string[], from: string | undefined, stage: Image, context: string): void {
  const sources = args.slice(0, -1)
  const target = args.at(-1) ?? ''
  const to = join(stage.root, resolve(stage.folder, target))
  const ignored = from === undefined ? readIgnored(context) : []
  for (const source of sources) {
    const path = join(from ?? context, source)
    const isFolder = statSync(path).isDirectory()
    const filter = (file: string): boolean => !isIgnored(file.slice(context.length + 1), ignored)
    const into = isFolder ? to : target.endsWith('/') ? join(to, basename(source)) : to
    cpSync(path, into, { recursive: true, verbatimSymlinks: true, filter })
  }
}

const readIgnored = (context: string): readonly string[] => {
  const file = join(context, '.dockerignore')
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []
}

const isIgnored = (path: string, patterns: readonly string[]): boolean =>
  patterns.some((pattern) =>
    new RegExp(`^${pattern.replaceAll('.', '\\.').replaceAll('*', '[^/]*')}(/|$)`).test(path),
  )

/** The command line that runs a command of an image in namespaces of its own. */
function commandIn(
  { root, environment, folder, user }: Image,
  command: readonly string[],
): readonly string[] {
  const mounts = [
    `mount -t proc proc ${root}/proc`,
    `mount -t tmpfs -o mode=755 dev ${root}/dev`,
    `mkdir -p ${root}/dev/shm`,
    // Docker's default.
    `mount -t tmpfs -o size=64m,mode=1777 shm ${root}/dev/shm`,
    ...['null', 'zero', 'random', 'urandom'].map(
      (name) => `touch ${root}/dev/${name}; mount --bind /dev/${name} ${root}/dev/${name}`,
    ),
    `ln -s /proc/self/fd ${root}/dev/fd`,
  ]
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`)
  const inRoot = [
    ...[
      'chroot',
      `--userspec=${user}`,
      root,
      '/usr/bin/env',
      '-i',
      `HOME=${user === 'root' ? '/root' : `/home/${user}`}`,
    ],
    ...[...variables, '/bin/sh', '-c', `cd ${folder}; exec "$@"`, 'sh', ...command],
  ]
  // With a process namespace, the command is the first process, as in a container.
  const script = `${mounts.join(' && ')} && exec "$@"`
  return ['unshare', '--mount', '--pid', '--fork', '--kill-child', '/bin/sh', '-c', script, 'sh', ...inRoot]
}

/** Starts the entry point of an image. Its first process has the parent `unshare`. */
export function startImage(image: Image, environment: Readonly<Record<string, string>>): ChildProcess {
  const started = { ...image, environment: { ...image.environment, ...environment } }
  const [file = '', ...args] = commandIn(started, [...image.entryPoint, ...image.command])
  return spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] })
}

/** Runs a command in an image that is running, such as its health check. Rejects with its stderr. */
export function runInImage(
  image: Image,
  command: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  const started = { ...image, environment: { ...image.environment, ...environment } }
  const [file = '', ...args] = commandIn(started, command)
  return execute(file, args)
}

/** Process ids of the children of a process. */
export const childrenOf = (id: number): readonly number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const [, rest = ''] = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')
        return Number(rest.split(' ')[1]) === id ? [Number(name)] : []
      } catch {
        return [] // It has ended.
      }
    })

const execute = async (file: string, args: readonly string[]): Promise<string> =>
  (await promisify(execFile)(file, args, { maxBuffer: 64 * 2 ** 20, timeout: commandTimeoutMs })).stdout
