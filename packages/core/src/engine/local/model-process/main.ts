/**
 * Entry point of a model process: loads one model and serves it on a private socket to the apps that use it.
 */
import { readLibraryVersion } from '../ipc/library-version.ts'
import { otherVersionExitCode, ProcessConfig, packageVersion } from '../ipc/process-config.ts'
import { ProcessHost } from './process-host.ts'

// Ignores Ctrl-C, since the host app drains its calls first. This process ends after the host app.
process.on('SIGINT', () => {})

const config = JSON.parse(process.argv[2] ?? 'null')
// An update has replaced files under a running app, so that messages may differ, or the name of this process is wrong.
const libraryVersion = readLibraryVersion(process.argv[1] ?? '')
if (config?.packageVersion !== packageVersion || config.libraryVersion !== libraryVersion)
  process.exit(otherVersionExitCode)
new ProcessHost(ProcessConfig.parse(config))
