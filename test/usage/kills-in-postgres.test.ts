/** Kills of apps and model processes with a database in PostgreSQL. */
import { testKills } from './kills.ts'

testKills('PostgreSQL')
