/**
 * An effect that takes place elsewhere: a card is charged by a payment service. No transaction
 * spans both, so the guard reserves the operation, runs the effect, and settles what became of it.
 * Where nobody heard how it ended, the outcome is unknown, and is never guessed.
 *
 * This service deduplicates by key and can be asked, as most do: so a resolver can find out.
 */

import assert from 'node:assert/strict'
import { NotAppliedError, WriteGuard, WriteRefusedError } from 'writefence'
import { openSqlite, SqliteFenceStore } from 'writefence/sqlite'

interface Charge {
  readonly id: string
  readonly cents: number
}

/** Stands in for the payment service and the network in front of it. */
class Payments {
  readonly #charges = new Map<string, Charge>()
  losesAnswers = false

  async charge(key: string, cents: number): Promise<Charge> {
    if (cents > 10_000) throw new NotAppliedError('the card was declined')
    const charge = this.#charges.get(key) ?? { id: `ch_${this.#charges.size + 1}`, cents }
    this.#charges.set(key, charge)
    if (this.losesAnswers) throw new Error('socket hang up')
    return charge
  }

  async find(key: string): Promise<Charge | undefined> {
    return this.#charges.get(key)
  }

  get count(): number {
    return this.#charges.size
  }
}

const payments = new Payments()
const guard = new WriteGuard(new SqliteFenceStore(openSqlite(':memory:')))
const token = { jobId: 'checkout-9', generation: 1, leaseId: 'a-random-id-of-this-acquisition' }

const charge = (operationId: string, cents: number) =>
  guard.effect({ token, operationId }, ({ operationId: key }) => payments.charge(key, cents))

assert.equal((await charge('deposit', 500)).status, 'applied')
assert.equal((await charge('deposit', 500)).status, 'replayed')

// An error that proves that nothing happened may be tried again.
await assert.rejects(charge('hotel', 99_000), NotAppliedError)
assert.equal((await charge('hotel', 9_000)).status, 'applied')

// An error that proves nothing: the card was charged, and the answer lost.
payments.losesAnswers = true
await assert.rejects(charge('flight', 7_000), /socket hang up/)
payments.losesAnswers = false
await assert.rejects(
  charge('flight', 7_000),
  (error) => error instanceof WriteRefusedError && error.code === 'outcome_unknown',
)

// With a resolver the next try finds out. An operator could say the same by `guard.resolve`.
const flight = await guard.effect(
  { token, operationId: 'flight' },
  ({ operationId: key }) => payments.charge(key, 7_000),
  {
    async onUnknown({ operationId: key }) {
      const found = await payments.find(key)
      return found ? { status: 'applied', result: found } : { status: 'not_applied' }
    },
  },
)
assert.equal(flight.status, 'replayed')
assert.deepEqual(flight.result, { id: 'ch_3', cents: 7_000 })
assert.equal(payments.count, 3)
