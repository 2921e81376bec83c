/** The server of an engine, of the run's own. */

import type { Engine } from '../engines/bank.ts'
import type { Ground, Server } from './server.ts'

export async function openServer(engine: Engine, ground: Ground): Promise<Server> {
  switch (engine) {
    case 'sqlite':
      return (await import('./sqlite-files.ts')).sqliteFiles(ground)
    case 'postgres':
      return (await import('./postgres-server.ts')).postgresServer(ground)
    case 'mariadb':
      return (await import('./mariadb-server.ts')).mariadbServer(ground)
    case 'redis':
      return (await import('./redis-server.ts')).redisServer(ground)
  }
}
