/** Where the servers of the tests are: as the usual variables say, or local ones that trust. */

export const postgresServer = {
  host: process.env.PGHOST ?? '127.0.0.1',
  port: Number(process.env.PGPORT ?? 5432),
  user: process.env.PGUSER ?? 'postgres',
  database: process.env.PGDATABASE ?? 'test',
}

export const mysqlServer = {
  host: process.env.MYSQL_HOST ?? '127.0.0.1',
  port: Number(process.env.MYSQL_PORT ?? 3306),
  user: process.env.MYSQL_USER ?? 'root',
  password: process.env.MYSQL_PASSWORD ?? '',
}

export const redisUrl = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379'
