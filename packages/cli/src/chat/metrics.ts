/** Formats the metrics of an answer, like `--verbose` in Ollama. */
import type { Metrics } from './answer.ts'

export function describeMetrics(metrics: Metrics): string {
  const { prompt_eval_count: promptTokens, prompt_eval_duration: promptNs } = metrics
  const { eval_count: outputTokens, eval_duration: outputNs } = metrics
  const rows: Readonly<Record<string, string>> = {
    'total duration': time(metrics.total_duration),
    'load duration': time(metrics.load_duration),
    'prompt eval count': tokens(promptTokens),
    'prompt eval duration': time(promptNs),
    'prompt eval rate': rate(promptTokens, promptNs),
    'eval count': tokens(outputTokens),
    'eval duration': time(outputNs),
    'eval rate': rate(outputTokens, outputNs),
  }
  return Object.entries(rows)
    .map(([name, value]) => (value ? `${`${name}:`.padEnd(22)}${value}\n` : ''))
    .join('')
}

const tokens = (count = 0): string => (count > 0 ? `${count} token(s)` : '')

const time = (ns = 0): string => {
  if (ns === 0) return ''
  return ns < 1e9 ? `${(ns / 1e6).toFixed(3)}ms` : `${(ns / 1e9).toFixed(3)}s`
}

const rate = (count = 0, ns = 0): string =>
  count > 0 && ns > 0 ? `${((count / ns) * 1e9).toFixed(2)} tokens/s` : ''
