import { expect, onTestFinished, test, vi } from 'vitest'
import { withFlags } from './flags.ts'
import { logToStderr } from './output.ts'

function logged(error: Error, message: string): string {
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  onTestFinished(() => write.mockRestore())
  logToStderr({ err: error }, message)
  return `${write.mock.calls[0]?.[0]}`
}

test('a line about an error has its message once, also with flags in place of options', () => {
  const message = 'Set the option `prices` of createLlm().'

  expect(logged(new Error(message), withFlags(message))).toBe(
    'modelmount: Set the option `prices` (--prices).\n',
  )
})

test('a line about an error has its cause', () => {
  expect(logged(new Error('Failed.', { cause: new Error('disk full\nat x') }), 'Failed.')).toBe(
    'modelmount: Failed. (disk full)\n',
  )
})
