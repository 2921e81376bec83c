/** The tables of both stores, as SQL, and their versions. */

/** One store's tables; `version` rises with every change of them. */
export interface MysqlSchema {
  readonly component: string
  readonly version: number
  readonly tables: readonly string[]
  /** The statements that create them, with `{}` for what comes before their names. */
  readonly sql: readonly string[]
}

// An id has at most 255 code points, of up to four bytes each. VARBINARY is compared byte by byte;
// the binary collations ignore spaces at the end, or have one name on MariaDB and another on MySQL.
// Three ids in a key take 3066 of the 3072 bytes that InnoDB allows.
const ID = 'VARBINARY(1020)'

// Not left to the server: other engines have no transactions, other row formats shorter keys.
const STORED =
  'ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET = ascii COLLATE = ascii_bin'

const VERSIONS = `CREATE TABLE IF NOT EXISTS {}schema (
  component VARBINARY(32) NOT NULL,
  version   INT           NOT NULL,
  PRIMARY KEY (component)
) ${STORED}`

export const FENCE_SCHEMA: MysqlSchema = {
  component: 'fence',
  version: 1,
  tables: ['fence', 'operation'],
  sql: [
    `CREATE TABLE IF NOT EXISTS {}fence (
  scope      ${ID} NOT NULL,
  job_id     ${ID} NOT NULL,
  generation BIGINT          NOT NULL CHECK (generation >= 0),
  holder     ENUM('none', 'unbound', 'lease') NOT NULL,
  lease_id   ${ID} NULL,
  sealed     TINYINT         NOT NULL CHECK (sealed IN (0, 1)),
  revision   BIGINT          NOT NULL,
  PRIMARY KEY (scope, job_id),
  CHECK ((holder = 'lease') = (lease_id IS NOT NULL))
) ${STORED}`,
    `CREATE TABLE IF NOT EXISTS {}operation (
  scope        ${ID} NOT NULL,
  job_id       ${ID} NOT NULL,
  operation_id ${ID} NOT NULL,
  status       ENUM('in_flight', 'unknown', 'applied') NOT NULL,
  generation   BIGINT          NOT NULL,
  fingerprint  ${ID} NULL,
  attempt_id   ${ID} NULL,
  deadline     BIGINT          NULL,
  applied_at   BIGINT          NULL,
  result       LONGBLOB        NULL,
  PRIMARY KEY (scope, job_id, operation_id),
  KEY unsettled (status, scope, job_id, generation),
  KEY applied (applied_at),
  CHECK ((status = 'applied') = (attempt_id IS NULL)),
  CHECK ((status = 'in_flight') = (deadline IS NOT NULL)),
  CHECK ((status = 'applied') = (applied_at IS NOT NULL)),
  CHECK (status = 'applied' OR result IS NULL)
) ${STORED}`,
  ],
}

export const LEASE_SCHEMA: MysqlSchema = {
  component: 'lease',
  version: 1,
  tables: ['lease'],
  sql: [
    `CREATE TABLE IF NOT EXISTS {}lease (
  job_id      ${ID} NOT NULL,
  generation  BIGINT          NOT NULL CHECK (generation >= 0),
  status      ENUM('leased', 'released', 'completed') NOT NULL,
  owner       ${ID} NULL,
  lease_id    ${ID} NULL,
  ttl         BIGINT          NULL,
  lease_until BIGINT          NULL,
  ended_by    ENUM('holder', 'operator') NULL,
  lapsed      TINYINT         NOT NULL CHECK (lapsed IN (0, 1)),
  ended_at    BIGINT          NULL,
  revision    BIGINT          NOT NULL,
  PRIMARY KEY (job_id),
  KEY by_status (status, job_id),
  KEY by_owner (owner, job_id),
  KEY ended (ended_at),
  CHECK (status <> 'leased' OR (owner IS NOT NULL AND ttl > 0)),
  CHECK ((owner IS NULL) = (lease_id IS NULL)),
  CHECK ((status = 'leased') = (ttl IS NOT NULL)),
  CHECK ((status = 'leased') = (lease_until IS NOT NULL)),
  CHECK ((status = 'leased') = (ended_by IS NULL)),
  CHECK (status <> 'leased' OR ended_at IS NULL)
) ${STORED}`,
  ],
}

/** The statements that create one store's tables, the last of which says that all are there. */
export function statementsOf({ component, version, sql }: MysqlSchema, prefix: string): string[] {
  // The first one to come sets the version: another one's is for its owner to notice.
  const insert = `INSERT IGNORE INTO {}schema (component, version)
VALUES ('${component}', ${version})`
  return [VERSIONS, ...sql, insert].map((statement) => statement.replaceAll('{}', prefix))
}

/** Everything that a migration tool needs, in one script: `sql/mysql.sql`. */
export function migration(prefix: string): string {
  const statements = [FENCE_SCHEMA, LEASE_SCHEMA].flatMap((one) => statementsOf(one, prefix))
  const script = [...new Set(statements)].map((statement) => `${statement};\n`).join('\n')
  return `-- The tables of writefence, as createSchema() makes them.\n${script}`
}
