/**
 * A lock and a number of PostgreSQL's: an advisory lock says who holds the job, and a sequence,
 * asked under that lock, in which order. A job is called as its sequence here.
 */

import pg from 'pg'
import type { FencingToken } from 'writefence'

export interface Numbered {
  /** A bigint, which the driver hands out as a string. */
  readonly nextval: string
}

/** The token of a holder. `leaseId`: a random one, made by the holder for this number. */
export function tokenOfSequence(jobId: string, row: Numbered, leaseId: string): FencingToken {
  return { jobId, generation: Number(row.nextval), leaseId }
}

export const address = {
  host: process.env.PGHOST ?? '127.0.0.1',
  port: Number(process.env.PGPORT ?? 5432),
  user: process.env.PGUSER ?? 'postgres',
  database: process.env.PGDATABASE ?? 'test',
}

/** A connection of one's own: the lock belongs to it, and ends with it. */
export async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ ...address, connectionTimeoutMillis: 10_000 })
  client.on('error', () => {}) // a connection that is lost while nobody asks it
  await client.connect()
  return client
}

/** Waits for the lock, then takes a number. In this order; each statement commits by itself. */
export async function acquire(client: pg.Client, sequence: string): Promise<Numbered> {
  await client.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', [sequence])
  return await next(client, sequence)
}

export async function release(client: pg.Client, sequence: string): Promise<void> {
  await client.query('SELECT pg_advisory_unlock(hashtextextended($1, 0))', [sequence])
}

export async function next(client: pg.Client, sequence: string): Promise<Numbered> {
  const { rows } = await client.query<Numbered>('SELECT nextval($1)', [sequence])
  return rows[0] as Numbered
}

/** Ends a connection from outside: a holder that is not heard of any more. */
export async function terminate(operator: pg.Client, pid: number): Promise<void> {
  await operator.query('SELECT pg_terminate_backend($1)', [pid])
}

/** What the server calls this connection. */
export async function pidOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  return rows[0]?.pid ?? 0
}
