/** The tables of both stores, their versions, and what is expected of a server. */

import { StoreUnavailableError } from '../../errors.ts'
import type { Query } from './postgres-database.ts'

/** Names of the tables, qualified and quoted where a schema was given. */
export interface PostgresTables {
  readonly schema: string | undefined
  readonly fence: string
  readonly operation: string
  readonly lease: string
  readonly versions: string
}

/** One store's tables; `version` rises with every change of `ddl`. */
export interface PostgresComponent {
  readonly name: 'fence' | 'lease'
  readonly version: number
  readonly ddl: (tables: PostgresTables) => string
}

// Materialized common table expressions.
const OLDEST_SERVER = 12

/** @throws TypeError or RangeError naming the option */
export function tablesIn(schema: unknown): PostgresTables {
  if (schema !== undefined && typeof schema !== 'string') {
    throw new TypeError('schema must be a string')
  }
  // PostgreSQL cuts longer names off without an error, and two of them would be one.
  if (schema !== undefined && !/^[^\p{Cc}]{1,63}$/u.test(schema)) {
    throw new RangeError('schema must be a name of 1 to 63 characters')
  }
  if (schema !== undefined && Buffer.byteLength(schema) > 63) {
    throw new RangeError('schema must have at most 63 bytes in UTF-8')
  }
  const prefix = schema === undefined ? '' : `${quoted(schema)}.`
  return {
    schema,
    fence: `${prefix}writefence_fence`,
    operation: `${prefix}writefence_operation`,
    lease: `${prefix}writefence_lease`,
    versions: `${prefix}writefence_schema`,
  }
}

export const FENCE_TABLES: PostgresComponent = {
  name: 'fence',
  version: 1,
  // Operations point to the row of their job: an index entry has 2704 bytes at the most, and
  // scope, job and operation id may take 3060. The collation compares bytes, whatever the
  // database's own does. A write updates the fence in place as long as there is room on its page.
  ddl: ({ fence, operation }) => `
CREATE TABLE ${fence} (
  id         bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope      text    COLLATE "C" NOT NULL,
  job_id     text    COLLATE "C" NOT NULL,
  generation bigint  NOT NULL CHECK (generation BETWEEN 0 AND 1000000000000000),
  holder     text    NOT NULL CHECK (holder IN ('none', 'unbound', 'lease')),
  lease_id   text    COLLATE "C" CHECK ((holder = 'lease') = (lease_id IS NOT NULL)),
  sealed     boolean NOT NULL,
  UNIQUE (scope, job_id)
) WITH (fillfactor = 80);

CREATE TABLE ${operation} (
  fence_id     bigint NOT NULL REFERENCES ${fence},
  operation_id text   COLLATE "C" NOT NULL,
  status       text   NOT NULL CHECK (status IN ('in_flight', 'unknown', 'applied')),
  generation   bigint NOT NULL,
  fingerprint  text   COLLATE "C",
  attempt_id   text   COLLATE "C" CHECK ((status = 'applied') = (attempt_id IS NULL)),
  deadline     bigint CHECK ((status = 'in_flight') = (deadline IS NOT NULL)),
  applied_at   bigint CHECK ((status = 'applied') = (applied_at IS NOT NULL)),
  result       text   CHECK (status = 'applied' OR result IS NULL),
  PRIMARY KEY (fence_id, operation_id)
);

CREATE INDEX writefence_operation_unsettled
  ON ${operation} (fence_id, status, generation) WHERE status <> 'applied';
CREATE INDEX writefence_operation_applied
  ON ${operation} (applied_at) WHERE status = 'applied';
`,
}

export const LEASE_TABLES: PostgresComponent = {
  name: 'lease',
  version: 1,
  ddl: ({ lease }) => `
CREATE TABLE ${lease} (
  job_id      text    COLLATE "C" PRIMARY KEY,
  generation  bigint  NOT NULL CHECK (generation BETWEEN 0 AND 999999999999999),
  status      text    NOT NULL CHECK (status IN ('leased', 'released', 'completed')),
  owner       text    COLLATE "C" CHECK (owner IS NOT NULL OR status <> 'leased'),
  lease_id    text    COLLATE "C" CHECK ((lease_id IS NULL) = (owner IS NULL)),
  ttl         bigint  CHECK ((status = 'leased') = (ttl IS NOT NULL) AND ttl > 0),
  lease_until bigint  CHECK ((status = 'leased') = (lease_until IS NOT NULL)),
  ended_by    text    CHECK (ended_by IN ('holder', 'operator')),
  lapsed      boolean NOT NULL,
  ended_at    bigint  CHECK (ended_at IS NULL OR status <> 'leased'),
  CHECK ((status = 'leased') = (ended_by IS NULL))
) WITH (fillfactor = 80);

CREATE INDEX writefence_lease_ended ON ${lease} (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX writefence_lease_status ON ${lease} (status, job_id);
CREATE INDEX writefence_lease_owner ON ${lease} (owner, job_id) WHERE owner IS NOT NULL;
`,
}

/** Everything that a migration tool needs, in one script: `sql/postgres.sql`. */
export function migration(tables: PostgresTables): string {
  const components = [FENCE_TABLES, LEASE_TABLES]
  const parts = components.map((each) => ddlWithVersion(each, tables))
  return [
    '-- The tables of writefence, as createSchema() makes them.\n',
    versionsDdl(tables),
    ...parts,
  ].join('')
}

/**
 * Creates the tables of a store where they are missing, and ends the transaction of `query`. Safe
 * when several processes do so at once: they take turns.
 * @throws StoreUnavailableError where there are tables of another version, or the server is too old
 */
export async function createTables(
  query: Query,
  component: PostgresComponent,
  tables: PostgresTables,
): Promise<void> {
  // CREATE ... IF NOT EXISTS is not enough: two of them at once fail on the catalog's own index.
  await query(`SELECT pg_advisory_xact_lock(hashtext('writefence_schema'))`)
  if (
    tables.schema !== undefined &&
    !(await exists(query, 'regnamespace', quoted(tables.schema)))
  ) {
    await query(`CREATE SCHEMA ${quoted(tables.schema)}`)
  }
  if (!(await exists(query, 'regclass', tables.versions))) await query(versionsDdl(tables))
  const found = await inspect(query, component, tables)
  if (found === undefined) await query(ddlWithVersion(component, tables))
  else assertVersion(component, found)
  await query('COMMIT')
}

/** @throws StoreUnavailableError where the tables are missing, of another version, or unusable */
export async function assertTables(
  query: Query,
  component: PostgresComponent,
  tables: PostgresTables,
): Promise<void> {
  const found = await inspect(query, component, tables)
  if (found !== undefined) return assertVersion(component, found)
  throw new StoreUnavailableError(
    `PostgreSQL: the ${component.name} tables are missing: ` +
      'call createSchema(), or run sql/postgres.sql',
  )
}

function assertVersion({ name, version }: PostgresComponent, found: number): void {
  if (found === version) return
  const advice = found > version ? 'upgrade writefence' : 'migrate the tables'
  throw new StoreUnavailableError(
    `PostgreSQL: the ${name} tables have version ${found}, ` +
      `this writefence needs ${version}: ${advice}`,
  )
}

interface Found {
  version: number | string | null
  server: number | string
  encoding: string
  fsync: string
}

let warned = false

/** The version of the tables; `undefined` where there is none yet. */
async function inspect(
  query: Query,
  component: PostgresComponent,
  tables: PostgresTables,
): Promise<number | undefined> {
  const [found] = await query<Found>(
    `SELECT (SELECT version FROM ${tables.versions} WHERE component = $1::text) AS version,
       current_setting('server_version_num')::integer / 10000 AS server,
       getdatabaseencoding() AS encoding, current_setting('fsync') AS fsync`,
    [component.name],
  )
  if (found === undefined) throw new StoreUnavailableError('PostgreSQL: the server gave no answer')
  if (Number(found.server) < OLDEST_SERVER) {
    throw new StoreUnavailableError(
      `PostgreSQL ${found.server} is too old: writefence needs ${OLDEST_SERVER} or newer`,
    )
  }
  if (found.encoding !== 'UTF8') {
    throw new StoreUnavailableError(
      `PostgreSQL: the database is encoded in ${found.encoding}, ids need UTF8`,
    )
  }
  if (found.fsync === 'off' && !warned) {
    warned = true
    process.emitWarning(
      'the PostgreSQL server runs with fsync = off: it can lose committed fences and leases',
      { type: 'WritefenceWarning', code: 'WRITEFENCE_DURABILITY' },
    )
  }
  return found.version === null ? undefined : Number(found.version)
}

async function exists(
  query: Query,
  kind: 'regclass' | 'regnamespace',
  name: string,
): Promise<boolean> {
  const [row] = await query<{ found: boolean }>(
    `SELECT to_${kind}($1::text) IS NOT NULL AS found`,
    [name],
  )
  return row?.found === true
}

function versionsDdl({ versions }: PostgresTables): string {
  return `CREATE TABLE ${versions} (
  component text    PRIMARY KEY,
  version   integer NOT NULL
);
`
}

function ddlWithVersion({ name, version, ddl }: PostgresComponent, tables: PostgresTables): string {
  return `${ddl(tables)}
INSERT INTO ${tables.versions} (component, version) VALUES ('${name}', ${version});
`
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
