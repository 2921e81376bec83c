/** PostgreSQL: node-postgres, many machines, the destination's own database. */

export type {
  PostgresPool,
  PostgresPooled,
  PostgresQueryable,
  PostgresStoreOptions,
} from './postgres-database.ts'
export { PostgresFenceStore, type PostgresFenceStoreOptions } from './postgres-fence-store.ts'
export { PostgresLeaseStore } from './postgres-lease-store.ts'
