/**
 * Entry point of a model process: loads one model and serves it on a private socket to the apps that use it. With
 * `--report`, it prints what it finds on the machine.
 */
import { readLibraryVersion } from '../ipc/library-version.ts'
import { reportArgument } from '../ipc/machine-report.ts'
import { otherVersionExitCode, ProcessConfig, packageVersion } from '../ipc/process-config.ts'
import { printReport } from './print-report.ts'
import { ProcessHost } from './process-host.ts'

if (process.argv[2] === reportArgument) await printReport()
else serveModel()

function serveModel(): void {
  // Ignores Ctrl-C, since the host app drains its calls first. This process ends after the host app.
  process.on('SIGINT', () => {})

  const config = JSON.parse(process.argv[2] ?? 'null')
  // An update has replaced files under a running app, so that messages may differ, or the name of this process is wrong.
  const libraryVersion = readLibraryVersion(process.argv[1] ?? '')
  if (config?.packageVersion !== packageVersion || config.libraryVersion !== libraryVersion)
    process.exit(otherVersionExitCode)
  new ProcessHost(ProcessConfig.parse(config))
}
