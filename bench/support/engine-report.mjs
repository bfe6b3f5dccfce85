// Report of the engine benchmark: ratios with their controls, and whether a row counts.
import { allowed } from './idle-guard.mjs'
import { median, print, printTable, quartiles } from './measure.mjs'

/** Bounds of the ratio between two runs of our server. Beyond them, the row measures noise. */
const control = { least: 0.95, most: 1.05 }

/**
 * Returns one row per measured number.
 * @param samples by measure and round: the numbers of each side, and how many cores other processes used
 */
export const judge = (measures, samples) =>
  Object.entries(measures).flatMap(([measure, { rows }]) =>
    Object.entries(rows).flatMap(([number, row]) => {
      const rounds = samples[measure]
      const of = (side) => rounds.map((round) => round[side]?.[number] ?? Number.NaN)
      const [ours, theirs, again] = [of('ours'), of('theirs'), of('control')]
      if (!Number.isFinite(median(ours))) return []
      const ratio = median(ours) / median(theirs)
      const noise = median(again) / median(ours)
      const others = Math.max(...rounds.map((round) => round.others))
      const doubts = [
        ...(noise >= control.least && noise <= control.most ? [] : ['control']),
        ...(others <= allowed ? [] : [`other processes used ${others.toFixed(2)} core`]),
      ]
      return [{ name: `${measure}.${number}`, ...row, ours, theirs, again, ratio, noise, others, doubts }]
    }),
  )

/** Prints the rows. The second argument names the two sides. */
export function report(rows, [mine, other]) {
  printTable(
    ['', mine, other, `${mine} / ${other}`, 'quartiles', 'control', 'target', 'valid'],
    rows.map(toCells),
  )
  printGrowth('concurrent calls', 'ms per token', rows, /^streams(\d+)\.all$/, (rate) => 1_000 / rate)
  printGrowth('prompt tokens', 'ms to the first token', rows, /^prompts\.first(\d+)$/, (ms) => ms)
  printMemory(rows)
  const valid = rows.filter(({ doubts }) => doubts.length === 0)
  const missed = valid.filter((row) => isMet(row) === false)
  print(
    `${valid.length} of ${rows.length} rows are valid: the control is within ${control.least} – ${control.most}, and other processes used at most ${allowed} core.`,
  )
  print(`Valid rows that miss their target: ${missed.length}${missed.length > 0 ? '\n' : ''}`)
  for (const { label } of missed) print(`- ${label}`)
}

function toCells(row) {
  const { label, ours, theirs, ratio, noise, doubts } = row
  const [low, high] = quartiles(ours.map((value, round) => value / theirs[round]))
  const isCompared = Number.isFinite(ratio)
  return [
    label,
    rounded(median(ours)),
    isCompared ? rounded(median(theirs)) : '–',
    isCompared ? `**${ratio.toFixed(3)}**` : '–',
    isCompared ? `${low.toFixed(2)} – ${high.toFixed(2)}` : '–',
    noise.toFixed(3),
    targetOf(row),
    doubts.length === 0 ? 'yes' : `no: ${doubts.join(', ')}`,
  ]
}

function targetOf(row) {
  const { atLeast, atMost, oursAtMost } = row
  const target = atLeast ? `≥ ${atLeast}` : atMost ? `≤ ${atMost}` : oursAtMost ? `ours ≤ ${oursAtMost}` : ''
  return isMet(row) === false ? `${target} (missed)` : target
}

/** `undefined` if the row has no target, or the other side has no number. */
function isMet({ ours, ratio, atLeast, atMost, oursAtMost }) {
  if (oursAtMost) return median(ours) <= oursAtMost
  if (!Number.isFinite(ratio)) return undefined
  if (atLeast) return ratio >= atLeast
  return atMost && ratio <= atMost
}

/**
 * Prints a cost at several sizes, relative to the cost at the smallest size.
 * @param name of the rows: the group is the size
 */
function printGrowth(size, cost, rows, name, toCost) {
  const lines = rows.flatMap((row) => {
    const [, one] = name.exec(row.name) ?? []
    return one ? [[one, ...[row.ours, row.theirs].map((values) => toCost(median(values)))]] : []
  })
  if (lines.length < 2) return
  const [[, ours, theirs]] = lines
  printTable(
    [size, `ours, ${cost}`, 'growth', `theirs, ${cost}`, 'growth'],
    lines.map(([one, mine, other]) => [
      one,
      rounded(mine),
      (mine / ours).toFixed(2),
      rounded(other),
      (other / theirs).toFixed(2),
    ]),
  )
}

function printMemory(rows) {
  const memory = rows.find(({ name }) => name === 'calls.memory')
  if (!memory) return
  const { ours, again, theirs } = memory
  const change = (values) => `${rounded(values[0])} → ${rounded(values.at(-1))} MB`
  print(
    `Memory from the first round to the last: ours ${change(ours.map((value, round) => Math.max(value, again[round])))}, theirs ${change(theirs)}.\n`,
  )
}

const rounded = (value) => value.toFixed(value < 10 ? 2 : 1)
