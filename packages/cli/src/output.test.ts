import { expect, onTestFinished, test, vi } from 'vitest'
import { withFlags } from './flags.ts'
import { logToStderr } from './output.ts'

const loggedError = (error: Error, message: string) => logged({ err: error }, message)

function logged(details: object, message: string): string {
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  onTestFinished(() => write.mockRestore())
  logToStderr(details, message)
  return `${write.mock.calls[0]?.[0]}`
}

test('a line about an error has its message once, also with flags in place of options', () => {
  const message = 'Set the option `prices` of createLlm().'

  expect(loggedError(new Error(message), withFlags(message))).toBe(
    'modelmount: Set the option `prices` (--prices).\n',
  )
})

test('a line about an error has its cause', () => {
  expect(loggedError(new Error('Failed.', { cause: new Error('disk full\nat x') }), 'Failed.')).toBe(
    'modelmount: Failed. (disk full)\n',
  )
})

test('a line about an event has its details', () => {
  const details = { engine: 'gpu', url: 'http://10.0.0.8:8000/', failure: 'unreachable' }

  expect(logged(details, 'replica ejected')).toBe(
    'modelmount: replica ejected engine=gpu url=http://10.0.0.8:8000/ failure=unreachable\n',
  )
})
