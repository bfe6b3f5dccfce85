/** Where keys and all else is that lasts. */
import { join } from 'node:path'

export const databaseIn = (folder: string): string => join(folder, 'modelmount.db')
