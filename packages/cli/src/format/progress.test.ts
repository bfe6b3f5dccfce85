import { expect, test } from 'vitest'
import { type ProgressLine, showProgress } from './progress.ts'

const lines: readonly ProgressLine[] = [
  { status: 'pulling manifest' },
  { status: 'pulling 8eeb52dfb3bb', digest: 'sha256:8eeb52dfb3bb', total: 2_000_000 },
  { status: 'pulling 8eeb52dfb3bb', digest: 'sha256:8eeb52dfb3bb', total: 2_000_000, completed: 500_000 },
  { status: 'success' },
]

async function* progressLines(failure?: Error): AsyncGenerator<ProgressLine> {
  yield* lines
  if (failure) throw failure
}

const screen = (isTTY: boolean) => {
  const written: string[] = []
  const write = (text: string): boolean => written.push(text) > 0
  return { isTTY, columns: 80, write: write as NodeJS.WriteStream['write'], text: () => written.join('') }
}

test('without a terminal, writes the lines as they arrive', async () => {
  const out = screen(false)

  await showProgress(progressLines(), out)

  expect(out.text()).toBe(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
})

test('a terminal shows a row per step, with full bars at the end', async () => {
  const out = screen(true)

  await showProgress(progressLines(), out)

  const rows = out.text().replaceAll('\x1b[K', '').replaceAll('\r', '').split('\n')
  expect(rows.map((row) => row.trimEnd())).toEqual([
    'pulling manifest',
    expect.stringMatching(/^pulling 8eeb52dfb3bb: 100% ▕█+▏ 2 MB$/),
    'success',
    '',
  ])
})

test('a failure keeps the progress shown, and rejects', async () => {
  const out = screen(true)

  await expect(showProgress(progressLines(new Error('gone')), out)).rejects.toThrow('gone')
  expect(out.text()).toContain(' 25% ')
})
