/** Kills of apps and model processes with a database in SQLite. */
import { testKills } from './kills.ts'

testKills('SQLite')
