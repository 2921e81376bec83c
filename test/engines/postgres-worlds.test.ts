import { describeWorlds } from './worlds.ts'

await describeWorlds('PostgreSQL', 'postgres')
