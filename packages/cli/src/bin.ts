/** Runs the command `modelmount`. */
import { expandThinkFlag } from './commands/run.ts'
import { describeError } from './describe-error.ts'
import { program } from './program.ts'

// A pipe such as `| head` may close early.
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => process.exit(code === 'EPIPE' ? 0 : 1))

await program.parseAsync(expandThinkFlag(process.argv)).catch((error: Error) => {
  process.stderr.write(`Error: ${describeError(error)}\n`)
  process.exitCode = 1
})
