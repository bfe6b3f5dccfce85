/** Checks whether `serve` could listen, or already listens. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { withBrackets } from '../host.ts'
import { occupantOf } from '../occupant.ts'
import { type Finding, findingsOf } from './finding.ts'

const { ok, warning, problem } = findingsOf('port')

export async function checkPort(host: string, port: number): Promise<Finding> {
  const address = `${withBrackets(host)}:${port}`
  const server = createServer().listen(port, host)
  try {
    await once(server, 'listening')
    return ok(`${address} is free`)
  } catch (error) {
    return describeFailure((error as NodeJS.ErrnoException).code, address, host, port)
  } finally {
    server.close()
  }
}

async function describeFailure(
  code: string | undefined,
  address: string,
  host: string,
  port: number,
): Promise<Finding> {
  if (code === 'EADDRNOTAVAIL') return problem(`${host} is no address of this machine.`, 'ip address')
  if (code === 'EACCES')
    return problem(`This user may not listen on ${address}.`, 'modelmount serve --port 11434')
  if (code !== 'EADDRINUSE') return problem(`No server can listen on ${address} (${code}).`)
  const occupant = await occupantOf(`http://${address}`)
  if (occupant === 'another Modelmount') return ok(`A server of Modelmount listens on ${address}`)
  return warning(
    `${address} is in use by ${occupant}.`,
    `modelmount serve --port ${port < 65_535 ? port + 1 : port - 1}`,
  )
}
