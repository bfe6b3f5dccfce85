import { expect, test } from 'vitest'
import { bar } from './bar.ts'

const half = {
  status: 'pulling 8eeb52dfb3bb',
  total: 200_000_000,
  completed: 100_000_000,
  resumed: 20_000_000,
  elapsedMs: 10_000,
}

test('a bar shows sizes, speed and remaining time', () => {
  expect(bar(half, 71)).toBe('pulling 8eeb52dfb3bb:  50% ▕█████     ▏ 100 MB/200 MB    8 MB/s    13s')
})

test('a complete bar shows its size', () => {
  const whole = bar({ ...half, completed: 200_000_000 }, 71)

  expect(whole.trimEnd()).toBe('pulling 8eeb52dfb3bb: 100% ▕██████████▏ 200 MB')
})

test.each([20, 40, 60, 80, 200])('a bar fits into %i columns', (columns) => {
  expect(bar(half, columns).length).toBeLessThan(columns)
})

test('handles a total of 0 and more bytes than the total', () => {
  expect(bar({ ...half, total: 0 }, 72)).toContain('  0% ')
  expect(bar({ ...half, completed: 300_000_000 }, 72)).toContain('100% ')
})

test('a bar of requests counts them', () => {
  const running = {
    ...half,
    status: 'running',
    total: 1_000,
    completed: 250,
    resumed: 200,
    unit: 'requests' as const,
  }

  expect(bar(running, 56)).toBe('running:  25% ▕██      ▏ 250/1000          5.0/s  2m30s')
  expect(bar({ ...running, completed: 1_000 }, 60).trimEnd()).toMatch(/▏ 1000 requests$/)
})

test('a bar of tokens counts them, and a bar of percent has no amounts', () => {
  const prompt = {
    ...half,
    status: 'prompt',
    total: 4_000,
    completed: 1_000,
    resumed: 0,
    unit: 'tokens' as const,
  }

  expect(bar(prompt, 56)).toBe('prompt:  25% ▕██       ▏ 1000/4000         100/s    30s')
  expect(bar({ ...prompt, status: 'load', total: 1, completed: 0.5, unit: 'percent' }, 25)).toBe(
    'load:  50% ▕█████     ▏ ',
  )
})
