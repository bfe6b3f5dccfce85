/** Kills of apps and model processes during batches, with a database in SQLite. */
import { testBatchKills } from './kills.ts'

testBatchKills('SQLite', 1)
