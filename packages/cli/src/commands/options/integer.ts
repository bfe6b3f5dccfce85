/** Parses whole numbers of flags. */
import { InvalidArgumentError } from 'commander'

/** Returns a parser of whole numbers in a range. */
export function integer(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
    if (value >= least && value <= most) return value
    throw new InvalidArgumentError(`Expected a whole number from ${least} to ${most}.`)
  }
}
