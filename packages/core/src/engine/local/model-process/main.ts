/**
 * Entry point of a model process: loads one model and serves it on a private socket to the apps that use it.
 */
import { ProcessConfig } from '../ipc/process-config.ts'
import { ProcessHost } from './process-host.ts'

// Ignores Ctrl-C, since the host app drains its calls first. This process ends after the host app.
process.on('SIGINT', () => {})

new ProcessHost(ProcessConfig.parse(JSON.parse(process.argv[2] ?? 'null')))
