import { describeWorlds } from './worlds.ts'

await describeWorlds('MariaDB', 'mariadb')
