/** A lease service that is killed. */

import express from 'express'
import { leaseRoutes } from '../../src/express/index.ts'
import type { LeaseStore } from '../../src/lease/lease-store.ts'
import { openSqlite, SqliteLeaseStore } from '../../src/storage/sqlite/index.ts'
import { endWithParent, listen, taskOf } from './child.ts'
import type { LeaseTask } from './tasks.ts'

async function open({ engine, where, slowness, kept }: LeaseTask): Promise<LeaseStore> {
  if (!kept) return new SqliteLeaseStore(openSqlite(':memory:'))
  switch (engine) {
    case 'sqlite':
      return (await import('./engines/sqlite.ts')).openLeases(where, slowness)
    case 'postgres':
      return (await import('./engines/postgres.ts')).openLeases(where, slowness)
    case 'mariadb':
      return (await import('./engines/mariadb.ts')).openLeases(where, slowness)
    case 'redis':
      return (await import('./engines/redis.ts')).openLeases(where, slowness)
  }
}

endWithParent()
const store = await open(taskOf<LeaseTask>())
listen(express().use(leaseRoutes(store, { authorize: 'none' })))
