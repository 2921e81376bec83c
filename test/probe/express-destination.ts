/** A destination as the README has it, over any engine, which can be stopped and started again. */

import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import type { Apply, StoreMode, WriteGuard } from 'writefence'
import { type ProbeFinding, probeDestination } from 'writefence/conformance'
import { type FencingOptions, fencing, fencingErrors } from 'writefence/express'
import { write } from './probing.ts'

export interface Credit {
  readonly jobId: string
  readonly operationId: string
}

interface Receipt {
  /** Of the credits of its job. */
  readonly number: number
}

/** What a destination has of its engine; opened anew whenever it starts. */
interface Ledger<Tx, Mode extends StoreMode> {
  readonly guard: WriteGuard<Tx, Mode>
  /** The write, inside the guard's transaction. */
  readonly within: (credit: Credit) => Apply<Tx, Receipt, Mode>
  /** The same by a handler that knows of no guard. */
  readonly unaware: (credit: Credit) => Receipt | Promise<Receipt>
  close(): unknown
}

interface Guarding<Tx, Mode extends StoreMode> {
  readonly open: () => Promise<Ledger<Tx, Mode>>
  /** The operations of a job in their order, read past the destination. */
  readonly effects: (jobId: string) => Promise<readonly string[]>
  readonly fencing: Pick<FencingOptions<express.Request>, 'protect' | 'fingerprint'>
  readonly framework?: typeof express | undefined
  /** Whether the guard comes before the parser of the body. */
  readonly first?: boolean | undefined
}

/** What the probe does not find, or could not try. */
export async function missingOf<Tx, Mode extends StoreMode>(
  guarding: Guarding<Tx, Mode>,
): Promise<ProbeFinding[]> {
  const { effects } = guarding
  let running = await start(guarding)
  try {
    const restart = async () => {
      await running.stop()
      running = await start(guarding)
      return running.baseUrl
    }
    const { baseUrl } = running
    const found = await probeDestination({ baseUrl, write, effects, restart, timeoutMs: 60_000 })
    return found.filter(({ holds }) => holds !== true)
  } finally {
    await running.stop()
  }
}

async function start<Tx, Mode extends StoreMode>(guarding: Guarding<Tx, Mode>) {
  const { open, fencing: options, framework = express, first = false } = guarding
  const { guard, within, unaware, close } = await open()
  const fence = fencing(guard, options)
  const app = framework()
  app.use(...(first ? [fence, framework.json()] : [framework.json(), fence]))
  const handle = async (req: express.Request): Promise<unknown> =>
    options.protect === 'handler'
      ? unaware(req.body)
      : (await fence.of(req).write(within(req.body))).result
  app.post('/credits', (req, res, next) => {
    // Express 4 waits for no promise.
    handle(req).then((done) => res.status(201).json(done), next)
  })
  app.use(fencingErrors())
  const server: Server = app.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await close()
    },
  }
}
