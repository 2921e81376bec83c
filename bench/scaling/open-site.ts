import { MysqlSite } from './mysql-site.ts'
import { PostgresSite } from './postgres-site.ts'
import { RedisSite } from './redis-site.ts'
import type { Engine, Site, SiteOptions } from './site.ts'
import { SqliteSite } from './sqlite-site.ts'

/** @throws whatever the driver says where the server does not answer */
export function openSite(engine: Engine, options?: SiteOptions): Promise<Site> {
  switch (engine) {
    case 'sqlite':
      return SqliteSite.open()
    case 'postgres':
      return PostgresSite.open(options)
    case 'mariadb':
      return MysqlSite.open(options)
    case 'redis':
      return RedisSite.open()
  }
}
