import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { showWaiting } from './waiting.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

const screen = (isTTY: boolean) => {
  const written: string[] = []
  const write = (text: string): boolean => written.push(text) > 0
  return { isTTY, columns: 60, write: write as NodeJS.WriteStream['write'], written }
}
const load = (completed: number) => ({ status: 'loading', total: 1, completed, unit: 'percent' as const })
const clear = '\r\x1b[K'

test('a line shows a spinner, then a bar, then a spinner, and is cleared at the end', () => {
  const out = screen(true)
  const waiting = showWaiting(out)

  vi.advanceTimersByTime(100)
  waiting.report(load(0.25))
  waiting.report(load(0.5))
  vi.advanceTimersByTime(100)
  waiting.report(undefined)
  vi.advanceTimersByTime(100)
  waiting.stop()
  waiting.stop()
  vi.advanceTimersByTime(1_000)

  expect(out.written.map((text) => text.replace(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/, '*').replace(/█+ +/, '██'))).toEqual([
    `\r*\x1b[K`,
    `\rloading:  50% ▕██▏ \x1b[K`,
    `\r*\x1b[K`,
    clear,
  ])
})

test('without a terminal, nothing is written', () => {
  const out = screen(false)
  const waiting = showWaiting(out)

  waiting.report(load(0.5))
  vi.advanceTimersByTime(1_000)
  waiting.stop()

  expect(out.written.map((text) => text.replace(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/, '*').replace(/█+ +/, '██'))).toEqual([])
})
