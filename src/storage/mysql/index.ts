/** MariaDB and MySQL, by mysql2: one primary, many hosts. */

export type {
  MysqlConnection,
  MysqlFenceStoreOptions,
  MysqlField,
  MysqlPool,
  MysqlQuery,
  MysqlStoreOptions,
} from './mysql-database.ts'
export { MysqlFenceStore } from './mysql-fence-store.ts'
export { MysqlLeaseStore } from './mysql-lease-store.ts'
