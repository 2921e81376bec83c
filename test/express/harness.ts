import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import http from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import express, { type Express } from 'express'
import { afterEach } from 'vitest'
import {
  type DecisionEvent,
  type FaultEvent,
  type FencingToken,
  WriteGuard,
  type WriteGuardOptions,
} from 'writefence'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'
import { formatFencingToken, formatIdempotencyKey } from '../../src/wire/headers.ts'

const express4 = createRequire(import.meta.url)('express4') as typeof express

/** Every law of this folder holds on both. */
export const versions: readonly (readonly [name: string, framework: typeof express])[] = [
  ['Express 5', express],
  ['Express 4', express4],
]

const closers: (() => unknown)[] = []

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** Runs `close` after the test. */
export function atEnd(close: () => unknown): void {
  closers.push(close)
}

/** A destination: a guard and an account in one database. */
export function destination(options?: WriteGuardOptions & { now?: () => number }) {
  const db = openSqlite(':memory:')
  const { now, ...guardOptions } = options ?? {}
  const store = new SqliteFenceStore(db, now === undefined ? {} : { now })
  const guard = new WriteGuard(store, guardOptions)
  db.exec('CREATE TABLE credits (amount INTEGER NOT NULL)')
  const insert = db.prepare('INSERT INTO credits (amount) VALUES (?)')
  const list = db.prepare('SELECT amount FROM credits ORDER BY rowid').pluck()
  atEnd(() => db.close())
  return {
    db,
    store,
    guard,
    /** The effect of a write: its result is the balance. */
    credit(amount: number) {
      return () => {
        insert.run(amount)
        return { balance: (list.all() as number[]).reduce((sum, each) => sum + each, 0) }
      }
    },
    credits: () => list.all() as number[],
  }
}

export type Destination = ReturnType<typeof destination>

/** The headers of a worker's write. */
export function bearing(
  generation: number,
  operationId?: string,
  token: Partial<FencingToken> = {},
): Record<string, string> {
  const whole = { jobId: 'job', generation, leaseId: `lease-${generation}`, ...token }
  return {
    'Fencing-Token': formatFencingToken(whole),
    ...(operationId === undefined ? {} : { 'Idempotency-Key': formatIdempotencyKey(operationId) }),
  }
}

/** Listens on a free port until the end of the test; returns the port. */
export async function listening(app: Express): Promise<number> {
  const server = app.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  atEnd(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}

/** Sends bytes as they are and returns what comes back until the other side closes. */
export function raw(port: number, head: readonly string[], body = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1')
    socket.setEncoding('latin1')
    socket.on('data', (chunk) => {
      answer += chunk
    })
    socket.on('end', () => resolve(answer))
    socket.on('error', reject)
    const length = Buffer.byteLength(body, 'latin1')
    const lines = [...head, 'Host: a', 'Connection: close', `Content-Length: ${length}`]
    socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`, 'latin1')
  })
}

/** What is published on a channel from here to the end of the test. */
function published<Event>(channel: string): Event[] {
  const events: Event[] = []
  const listener = (event: unknown) => events.push(event as Event)
  subscribe(channel, listener)
  atEnd(() => unsubscribe(channel, listener))
  return events
}

export const decisions = () => published<DecisionEvent>('writefence:decision')
export const faults = () => published<FaultEvent>('writefence:fault')

/** Resolves with the first event of a channel that is wanted. */
export function once<Event>(
  channel: 'writefence:decision' | 'writefence:fault',
  wanted: (event: Event) => boolean,
): Promise<Event> {
  return new Promise((resolve) => {
    const listener = (event: unknown) => {
      if (!wanted(event as Event)) return
      unsubscribe(channel, listener)
      resolve(event as Event)
    }
    subscribe(channel, listener)
  })
}

/** A promise and the function that fulfils it. */
export function signal<T = void>(): { promise: Promise<T>; fire: (value: T) => void } {
  let fire: (value: T) => void = () => {}
  const promise = new Promise<T>((resolve) => {
    fire = resolve
  })
  return { promise, fire }
}

/** One request with its headers just as given (repeated ones in a list of pairs), undecoded. */
export function plain(
  port: number,
  sent: { method?: string; path?: string; headers?: http.OutgoingHttpHeaders; body?: string },
): Promise<{ status: number; headers: http.IncomingHttpHeaders; body: Buffer }> {
  const { method = 'POST', path = '/', headers = {}, body } = sent
  return new Promise((resolve, reject) => {
    const req = http.request({ port, method, path, headers, agent: false }, (res) => {
      const chunks: Buffer[] = []
      res.on('data', (chunk: Buffer) => chunks.push(chunk))
      res.on('error', reject)
      res.on('end', () => {
        const { statusCode: status = 0, headers: received } = res
        resolve({ status, headers: received, body: Buffer.concat(chunks) })
      })
    })
    req.on('error', reject)
    req.end(body)
  })
}
