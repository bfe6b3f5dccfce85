/**
 * Entry point of a model process: loads one model and serves it on a private socket to the apps that use it.
 */
import { ProcessConfig } from '../ipc/process-config.ts'
import { ProcessHost } from './process-host.ts'

// Ctrl-C reaches the whole process group. The host app drains first, and this process ends after it.
process.on('SIGINT', () => {})

new ProcessHost(ProcessConfig.parse(JSON.parse(process.argv[2] ?? 'null')))
