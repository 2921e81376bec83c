import { describeWorlds } from './worlds.ts'

await describeWorlds('Redis', 'redis')
