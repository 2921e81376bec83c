import { describe, expect, it, vi } from 'vitest'
import type { ClaimResult, LeaseKey } from 'writefence'
import { SqliteLeaseStore } from 'writefence/sqlite'
import { open, temporaryFile } from '../support/sqlite-destination.ts'
import { type Child, start } from './spawn.ts'

const ROUNDS = 500
/** How many rounds both sides play between two starting shots. */
const HEAT = 10

type Answer = { readonly status: string; readonly reason?: string }

/** Lets both sides play all rounds, each heat from the same starting shot. */
async function race(
  sides: readonly [Child, Child],
  keys: readonly LeaseKey[],
): Promise<[Answer, Answer][]> {
  await Promise.all(sides.map((side) => side.line()))
  const rounds: [Answer, Answer][] = []
  for (let at = 0; at < keys.length; at += HEAT) {
    const heat = keys.slice(at, at + HEAT)
    for (const side of sides) side.tell(JSON.stringify(heat))
    const lines = await Promise.all(sides.map((side) => side.line()))
    const [first = [], second = []] = lines.map((line) => JSON.parse(line) as Answer[])
    for (const [i, answer] of first.entries()) rounds.push([answer, second[i] as Answer])
  }
  return rounds
}

async function leases(store: SqliteLeaseStore): Promise<LeaseKey[]> {
  const answers = await Promise.all(
    Array.from({ length: ROUNDS }, (_, i) =>
      store.claim({ jobId: `job ${i}`, owner: 'first', ttlMs: 1 }),
    ),
  )
  return answers.map((answer) => (answer as Extract<ClaimResult, { status: 'claimed' }>).lease)
}

describe('two processes on one file', () => {
  it.each(['complete', 'release'] as const)(
    `R13: of a %s and a claim, ${ROUNDS} times, exactly one wins`,
    async (part) => {
      const path = temporaryFile()
      const store = new SqliteLeaseStore(open(path))
      const keys = await leases(store)
      const rounds = await race(
        [start('racer.ts', path, part), start('racer.ts', path, 'claim', 'second')],
        keys,
      )
      expect(rounds).toHaveLength(ROUNDS)
      for (const [i, [ending, claim]] of rounds.entries()) {
        const about = `round ${i}: ${JSON.stringify([ending, claim])}`
        const record = await store.get(`job ${i}`)
        if (ending.status === 'lost') {
          expect(ending.reason, about).toBe('superseded')
          expect(claim, about).toMatchObject({ status: 'claimed', lease: { generation: 2 } })
        } else if (part === 'complete') {
          expect([ending.status, claim.status], about).toEqual(['completed', 'completed'])
          expect(record, about).toMatchObject({ status: 'completed', generation: 1 })
        } else {
          // Given back first: the claim that follows finds the job free.
          expect([ending.status, claim.status], about).toEqual(['released', 'claimed'])
        }
        if (claim.status === 'claimed') {
          expect(record, about).toMatchObject({ status: 'leased', generation: 2, owner: 'second' })
        }
      }
    },
    60_000,
  )

  it(`R112: of two first claims, ${ROUNDS} times, one wins and the other is told who`, async () => {
    const path = temporaryFile()
    const store = new SqliteLeaseStore(open(path))
    const keys = Array.from({ length: ROUNDS }, (_, i) => ({
      jobId: `job ${i}`,
      owner: '',
      generation: 1,
      leaseId: '',
    }))
    const rounds = await race(
      [start('racer.ts', path, 'claim', 'a'), start('racer.ts', path, 'claim', 'b')],
      keys,
    )
    expect(rounds).toHaveLength(ROUNDS)
    for (const [i, answers] of rounds.entries()) {
      const about = `round ${i}: ${JSON.stringify(answers)}`
      expect(answers.map(({ status }) => status).sort(), about).toEqual(['claimed', 'held'])
      const winner = answers[0].status === 'claimed' ? 'a' : 'b'
      const loser = answers.find(({ status }) => status === 'held')
      expect(loser, about).toMatchObject({ owner: winner, generation: 1 })
      expect(await store.get(`job ${i}`), about).toMatchObject({ owner: winner, generation: 1 })
    }
  }, 60_000)
})

describe('R35: a worker that goes', () => {
  const request = { jobId: 'job', owner: 'next', ttlMs: 60_000 }

  it('by SIGKILL leaves a lease that runs out, and no sooner is claimable', async () => {
    const path = temporaryFile()
    const store = new SqliteLeaseStore(open(path))
    const child = start('lone-worker.ts', path, '1000')
    expect(await child.line()).toBe('working under 1')
    child.process.kill('SIGKILL')
    expect(await child.ended).toBe('SIGKILL')
    const answers: ClaimResult[] = []
    await vi.waitUntil(
      async () => {
        answers.push(await store.claim(request))
        return answers.at(-1)?.status === 'claimed'
      },
      { timeout: 10_000, interval: 50 },
    )
    const [first] = answers
    expect(first).toMatchObject({ status: 'held', owner: 'lone', generation: 1 })
    expect(answers.at(-1)).toMatchObject({ lease: { generation: 2 } })
    // By the store's own time: the new lease began when the old one had ended.
    const began = (answers.at(-1) as { lease: { leaseUntil: number } }).lease.leaseUntil - 60_000
    const ended = (answers.at(-2) as { leaseUntil: number }).leaseUntil
    expect(began).toBeGreaterThanOrEqual(ended)
  })

  it('by SIGTERM leaves a job that is claimable at once', async () => {
    const path = temporaryFile()
    const store = new SqliteLeaseStore(open(path))
    const child = start('lone-worker.ts', path, '600000')
    expect(await child.line()).toBe('working under 1')
    child.process.kill('SIGTERM')
    expect(await child.line()).toBe('stopped')
    expect(await child.ended).toBe(0)
    expect(await store.claim(request)).toMatchObject({
      status: 'claimed',
      lease: { generation: 2 },
    })
  })
})
