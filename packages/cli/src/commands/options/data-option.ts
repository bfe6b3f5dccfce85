/** The option `--data` of commands that use the database of keys and usage. */
import { Option } from 'commander'

export const dataOption = (): Option =>
  new Option(
    '--data <location>',
    'folder with modelmount.db, or postgres://… (default: the folder of models)',
  )
