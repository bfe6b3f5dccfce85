/** Reads the files that flags of `modelmount serve` name. */
import { readPrices } from '../accounts/prices.ts'
import { type ServeFiles, type ServeOptions, toLlmOptions } from '../serve-options.ts'
import { readConfigFile } from './config-file.ts'

export const readFiles = async ({ config, prices }: ServeOptions): Promise<ServeFiles> => ({
  config: config === undefined ? {} : await readConfigFile(config),
  prices: prices === undefined ? undefined : readPrices(prices),
})

/** Returns a function that says whether the value of an option is from the configuration file. */
export const isFromFile =
  (files: ServeFiles, flags: ServeOptions) =>
  (option: string): boolean => {
    const value = valueAt(files.config, option)
    return value !== undefined && value === valueAt(toLlmOptions(flags, files), option)
  }

/** @param option such as `local.keepAlive`. Of a group with unknown members, only the group counts */
function valueAt(options: object, option: string): unknown {
  let value: unknown = options
  for (const name of option.split('.'))
    value = (value as Readonly<Record<string, unknown>> | undefined)?.[name]
  return value
}
