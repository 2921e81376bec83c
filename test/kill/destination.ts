/**
 * A destination that is killed: a guarded write, an unaware handler, and an effect at a third
 * system. What a predecessor has left unsettled is found out and resolved, as operators would.
 */

import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import express, { type NextFunction, type Request, type Response } from 'express'
import { fenceRoutes, fencing, fencingErrors } from '../../src/express/index.ts'
import type { StoreMode } from '../../src/guard/fence-store.ts'
import type { FencingToken } from '../../src/token.ts'
import { endWithParent, listen, taskOf } from './child.ts'
import { type Bank, type Effect, NotInserted, type Told } from './engines/bank.ts'
import { type DestinationTask, shardOf } from './tasks.ts'

const jobId = (req: Request) => String(req.params.job)

function routes<Tx, Mode extends StoreMode>(bank: Bank<Tx, Mode>, task: DestinationTask) {
  const { guard } = bank
  const written = fencing(guard, { jobId })
  const handled = fencing(guard, { jobId, protect: 'handler' })
  const running = new Set<string>()
  /** Until it is answered, nobody but the request itself knows what becomes of its effect. */
  const track = (req: Request, res: Response, next: NextFunction) => {
    const run = `${keyOf(jobId(req), req.get('Idempotency-Key') ?? '')} ${randomUUID()}`
    running.add(run)
    const end = res.end.bind(res) as (...args: unknown[]) => Response
    res.end = (...args: unknown[]) => {
      running.delete(run)
      return end(...args)
    }
    next()
  }
  const app = express().use(express.json())
  app.get('/jobs/:job/done', written, async (req, res) => {
    try {
      res.json({ done: await bank.count(jobId(req)) })
    } catch {
      res.status(503).json({ problem: 'it cannot be read' })
    }
  })
  app.post('/jobs/:job/write', written, async (req, res) => {
    const fence = written.of(req)
    const { result } = await fence.write(bank.within(effectOf(fence)))
    res.json(result)
  })
  app.post('/jobs/:job/handle', track, handled, async (req, res) => {
    const effect = effectOf(handled.of(req))
    try {
      await bank.insert(effect)
      // It has more to do than that; what is killed now has had its effect, and no record says so.
      await sleep(15 * Math.random())
      res.json({ nonce: effect.nonce })
    } catch (error) {
      if (!(error instanceof NotInserted)) throw error
      res.status(503).json({ problem: 'nothing was inserted' })
    }
  })
  app.post('/jobs/:job/elsewhere', track, written, async (req, res) => {
    const { result } = await written.of(req).effect(async ({ token, operationId }) => {
      const body = JSON.stringify({ ...token, operationId })
      const answer = await fetch(`${task.third}/effects`, { method: 'POST', body })
      if (!answer.ok) throw new Error(`the third system answered ${answer.status}`)
      return (await answer.json()) as Told
    })
    res.json(result)
  })
  app.use(fenceRoutes(guard, { authorize: 'none' }))
  app.use(fencingErrors())
  const isRunning = (job: string, operation: string) =>
    [...running].some((run) => run.startsWith(`${keyOf(job, operation)} `))
  void settleOnAndOn(bank, task, isRunning)
  return app
}

interface Asked {
  readonly token: FencingToken
  readonly operationId: string | undefined
}

function effectOf({ token, operationId: operation = '' }: Asked): Effect {
  const { jobId: job, generation, leaseId: lease = '' } = token
  return { job, operation, generation, lease, nonce: randomUUID() }
}

/**
 * Resolves what has ended without proof, and what is overdue although nobody here runs it: whoever
 * began it is dead, and what is there is all that there will be.
 */
async function settleOnAndOn<Tx, Mode extends StoreMode>(
  { guard, find }: Bank<Tx, Mode>,
  { third, index, count, fault }: DestinationTask,
  isRunning: (job: string, operation: string) => boolean,
): Promise<never> {
  const settle = async (job: string, operationId: string) => {
    if (isRunning(job, operationId)) return
    const result = operationId.startsWith('elsewhere')
      ? ((await (await fetch(`${third}/effects/${job}/${operationId}`)).json()) as Told | null)
      : ((fault === 'guesses' ? undefined : await find(job, operationId)) ?? null)
    const none = { status: 'not_applied' } as const
    const ending = result === null ? none : { status: 'applied' as const, result }
    await guard.resolve({ jobId: job, operationId }, ending)
  }
  for (;;) {
    try {
      for (const { jobId: job, operationId, status } of await guard.unsettled({ limit: 1000 })) {
        const mine = shardOf(job, count) === index
        if (mine && status !== 'in_flight') await settle(job, operationId)
      }
    } catch {
      // The store does not answer: later, then.
    }
    await sleep(100)
  }
}

function keyOf(job: string, operation: string): string {
  return JSON.stringify([job, operation.replaceAll('"', '')])
}

async function open(task: DestinationTask) {
  const { engine, where, index, slowness } = task
  const name = `bank-${index}`
  switch (engine) {
    case 'sqlite':
      return routes((await import('./engines/sqlite.ts')).openBank(where, slowness), task)
    case 'postgres':
      return routes(
        await (await import('./engines/postgres.ts')).openBank(where, name, slowness),
        task,
      )
    case 'mariadb':
      return routes(
        await (await import('./engines/mariadb.ts')).openBank(where, name, slowness),
        task,
      )
    case 'redis':
      return routes(
        await (await import('./engines/redis.ts')).openBank(where, name, slowness),
        task,
      )
  }
}

endWithParent()
listen(await open(taskOf<DestinationTask>()))
