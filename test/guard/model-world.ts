/** A real guard beside its model: every action is done to both, and their answers compared. */

import { deepStrictEqual as same } from 'node:assert/strict'
import type { Database } from 'better-sqlite3'
import { AttemptSupersededError, NotAppliedError, WriteGuard, WriteRefusedError } from 'writefence'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'
import { type Call, GuardModel } from './guard-model.ts'

export const JOBS = ['j', 'k']
export const OPERATIONS = ['x', 'y']

export type Action =
  | { readonly do: 'write'; readonly call: Call; readonly throws: boolean }
  | {
      readonly do: 'begin'
      readonly call: Call
      readonly deadlineMs: number
      readonly rerun: boolean
      readonly proceed: boolean
    }
  | { readonly do: 'end'; readonly which: number; readonly how: 'ok' | 'unknown' | 'not_applied' }
  | { readonly do: 'advance' | 'seal'; readonly call: Call }
  | { readonly do: 'reopen'; readonly job: string }
  | {
      readonly do: 'resolve'
      readonly job: string
      readonly operation: string
      readonly result: string | undefined
    }
  | { readonly do: 'clock'; readonly ms: number }
  | { readonly do: 'restart' }
  | { readonly do: 'prune'; readonly olderThanMs: number }

interface Running {
  readonly call: Call & { operation: string }
  readonly named: boolean
  readonly attempt: number
  readonly rerun: boolean
  /** Of the overdue attempt that this one has taken over. */
  readonly beside: number | undefined
  readonly ended: Promise<unknown>
  finish(result: string): void
  fail(error: unknown): void
  /** The store that it settles with was closed: a crash. */
  lost: boolean
}

/** One effect that took place, in the order in which they did. */
export interface Effect {
  readonly job: string
  readonly generation: number
  readonly operation: string | undefined
  /** What a write has left in the table. */
  readonly text?: string
}

const boom = new Error('boom')

export class ModelWorld {
  readonly model = new GuardModel()
  readonly #db = openSqlite(':memory:')
  #guard: WriteGuard<Database, 'sync'>
  #running: Running[] = []
  #count = 0
  readonly effects: Effect[] = []
  /** Jobs whose order was given up, or whose operator has said what is not so. */
  readonly unordered = new Set<string>()
  readonly pruned = new Set<string>()
  /** Every verdict that was met. */
  readonly said: string[] = []

  constructor() {
    this.#db.exec('CREATE TABLE log (text TEXT NOT NULL)')
    this.#guard = this.#open()
  }

  #open() {
    return new WriteGuard(new SqliteFenceStore(this.#db, { now: () => this.model.now }))
  }

  async close(): Promise<void> {
    for (const each of this.#running) each.fail(boom)
    await Promise.all(this.#running.map((each) => each.ended))
    this.#db.close()
  }

  async take(action: Action): Promise<void> {
    switch (action.do) {
      case 'write':
        return this.#write(action)
      case 'begin':
        return this.#begin(action)
      case 'end':
        return this.#end(action)
      case 'advance':
      case 'seal':
        return this.#admit(action)
      case 'reopen':
        this.model.reopen(action.job)
        return void (await this.#guard.reopen(action.job))
      case 'resolve':
        return this.#resolve(action)
      case 'clock':
        this.model.now = Math.max(0, this.model.now + action.ms)
        return
      case 'restart':
        await this.#guard.close()
        for (const each of this.#running) each.lost = true
        this.#guard = this.#open()
        return
      case 'prune': {
        const { olderThanMs } = action
        const gone = this.model.prune(olderThanMs)
        for (const key of gone) this.pruned.add(key)
        same(await this.#guard.prune({ olderThanMs }), { pruned: gone.length })
      }
    }
  }

  /** What the guard remembers is what the model does, and the table has what was applied. */
  async check(): Promise<void> {
    for (const job of JOBS) {
      same(await this.#guard.inspect(job), this.model.state(job))
      for (const operation of OPERATIONS) {
        const record = this.model.find({ job, operation })
        const token = { jobId: job, generation: 999 }
        const intent = { token, operationId: operation, fingerprint: record?.fingerprint ?? 'f' }
        const { status } = await this.#guard.judge(intent)
        same(status === 'replay', record?.state === 'applied')
      }
    }
    const log = this.#db.prepare<[], string>('SELECT text FROM log').pluck().all()
    same(
      log,
      this.effects.flatMap(({ text }) => text ?? []),
    )
  }

  async #write({ call, throws }: Extract<Action, { do: 'write' }>): Promise<void> {
    const text = `r${++this.#count}`
    const outcome = this.#guard.write(intentOf(call), (tx) => {
      tx.prepare('INSERT INTO log (text) VALUES (?)').run(text)
      if (throws) throw boom
      return text
    })
    const said = this.model.judge(call)
    this.said.push(said)
    const recorded = this.model.find(call)?.result
    if (said !== 'applied') return same(await told(outcome), answer(said, recorded))
    if (throws) return same(await told(outcome), boom)
    same(await told(outcome), answer('applied', text))
    if (call.operation !== undefined) {
      this.model.put({ ...call, operation: call.operation }, { result: text })
    }
    this.effects.push({ ...call, text })
  }

  async #begin(action: Extract<Action, { do: 'begin' }>): Promise<void> {
    const { call, deadlineMs, rerun, proceed } = action
    const attempt = ++this.#count
    const own = this.model.find(call)
    const said = this.model.judge(call, { takes: rerun, proceed })
    this.said.push(said)
    const running = start(this.#guard, action)
    if (said !== 'applied') return same(await running.ended, answer(said, own?.result))
    await running.started
    const operation = call.operation ?? `unnamed ${attempt}`
    const named = { ...call, operation }
    // What is taken over, or passed, may still take place beside or after what begins here.
    if (own !== undefined || proceed) this.unordered.add(call.job)
    const beside = own?.state === 'begun' ? own : undefined
    const begun = { ...named, generation: beside?.generation ?? call.generation }
    this.model.put(begun, { state: 'begun', attempt, deadline: this.model.now + deadlineMs })
    this.#running.push({
      ...running,
      call: named,
      named: call.operation !== undefined,
      attempt,
      rerun,
      beside: beside?.generation,
      lost: false,
    })
  }

  async #end({ which, how }: Extract<Action, { do: 'end' }>): Promise<void> {
    const [running] = this.#running.splice(which % Math.max(1, this.#running.length), 1)
    if (running === undefined) return
    const { call, named, attempt, beside } = running
    const result = `r${++this.#count}`
    const error = how === 'unknown' ? boom : new NotAppliedError()
    if (how === 'ok') running.finish(result)
    else running.fail(error)
    // The other one may still take place: it goes on holding back, overdue from now on.
    const unproven = how !== 'ok' && beside !== undefined
    const left = unproven ? { ...call, generation: beside } : call
    const ending = unproven
      ? ({ state: 'begun', deadline: this.model.now } as const)
      : endingOf(how, named, result)
    const settled = running.lost ? 'lost' : this.model.settle(left, attempt, ending)
    const told = await running.ended
    if (how !== 'ok') return same(told, error)
    this.effects.push({ ...call, operation: named ? call.operation : undefined })
    if (settled === 'lost' && running.rerun) return same(told, answer('outcome_unknown', undefined))
    if (settled === false) return same(told instanceof AttemptSupersededError, true)
    same(told, answer('applied', result))
  }

  async #admit({ do: verb, call }: Extract<Action, { do: 'advance' | 'seal' }>): Promise<void> {
    const { job: jobId, generation, lease: leaseId } = call
    const state = this.#guard[verb]({ jobId, generation, leaseId })
    const said = this.model.admit(call)
    if (said !== '') return same(await told(state), answer(said, undefined))
    const fence = this.model.fences.get(jobId)
    if (verb === 'seal' && fence !== undefined) fence.sealed = true
    same(await state, this.model.state(jobId))
  }

  async #resolve({ job, operation, result }: Extract<Action, { do: 'resolve' }>): Promise<void> {
    const operationId = operation
    const resolved = this.#guard.resolve(
      { jobId: job, operationId },
      result === undefined ? { status: 'not_applied' } : { status: 'applied', result },
    )
    const said = this.model.resolve(job, operation, result)
    if (said === 'in_flight') return same(await told(resolved), answer(said, undefined))
    same(await resolved, { status: said })
    if (said === 'resolved') this.unordered.add(job)
  }
}

function intentOf({ job, generation, lease, operation, fingerprint }: Call) {
  const token = { jobId: job, generation, leaseId: lease }
  return { token, operationId: operation, fingerprint }
}

function endingOf(how: string, named: boolean, result: string) {
  if (how === 'unknown') return { state: 'unknown' } as const
  return how === 'ok' && named ? ({ result } as const) : 'gone'
}

/** A refusal as its code, an outcome as its status and result, any other error as it is. */
async function told(call: Promise<unknown>): Promise<unknown> {
  try {
    const { status, result } = (await call) as { status: string; result: unknown }
    return answer(status, result)
  } catch (error) {
    return error instanceof WriteRefusedError ? answer(error.code, undefined) : error
  }
}

function answer(said: string, result: unknown) {
  const succeeded = said === 'applied' || said === 'replayed'
  return succeeded ? { said, result } : { said }
}

function start(guard: WriteGuard<Database, 'sync'>, action: Extract<Action, { do: 'begin' }>) {
  let finish: (result: string) => void = () => {}
  let fail: (error: unknown) => void = () => {}
  let begun: () => void = () => {}
  const end = new Promise<string>((resolve, reject) => {
    finish = resolve
    fail = reject
  })
  const started = new Promise<void>((resolve) => {
    begun = resolve
  })
  const perform = () => {
    begun()
    return end
  }
  const outcome = guard.effect(intentOf(action.call), perform, {
    deadlineMs: action.deadlineMs,
    onUnknown: action.rerun ? 'rerun' : 'refuse',
    afterOverdue: action.proceed ? 'proceed' : 'refuse',
  })
  return { ended: told(outcome), started, finish, fail }
}
