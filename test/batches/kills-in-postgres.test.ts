/** Kills of apps and model processes during batches, with a database in PostgreSQL. */
import { testBatchKills } from './kills.ts'

testBatchKills('PostgreSQL', 3)
