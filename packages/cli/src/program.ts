/** The command `modelmount` with all its commands. */
import { createRequire } from 'node:module'
import { Command } from 'commander'
import { batch } from './commands/batch.ts'
import { cp } from './commands/cp.ts'
import { create } from './commands/create.ts'
import { db } from './commands/db.ts'
import { doctor } from './commands/doctor.ts'
import { fleet } from './commands/fleet.ts'
import { keys } from './commands/keys.ts'
import { list } from './commands/list.ts'
import { ps } from './commands/ps.ts'
import { pull } from './commands/pull.ts'
import { push } from './commands/push.ts'
import { rm } from './commands/rm.ts'
import { run } from './commands/run.ts'
import { serve } from './commands/serve.ts'
import { show } from './commands/show.ts'
import { stop } from './commands/stop.ts'
import { tenants } from './commands/tenants.ts'
import { top } from './commands/top.ts'
import { usage } from './commands/usage.ts'
import { environmentHelp } from './environment.ts'

const { version, description } = createRequire(import.meta.url)('../package.json') as Record<string, string>

export const program = new Command('modelmount')
  .description(description ?? '')
  .version(version ?? '', '-v, --version')
  .addHelpText('after', environmentHelp())
  // `-v` after a command is an option of that command.
  .enablePositionalOptions()

for (const command of [
  serve,
  run,
  pull,
  push,
  create,
  list,
  ps,
  top,
  fleet,
  show,
  cp,
  rm,
  stop,
  batch,
  keys,
  tenants,
  usage,
  db,
  doctor,
])
  program.addCommand(command)
