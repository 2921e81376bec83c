import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { describe, expect, it } from 'vitest'
import { LeaseLostError, StoreUnavailableError, WriteRefusedError } from 'writefence'
import { type Answer, APPLIED, fetching, ok, PLACE, POST, refusal } from './fetch-bench.ts'
import { runBench } from './run-bench.ts'

const bench = runBench()

describe('what lease.fetch makes of an answer', () => {
  it.each(['stale', 'conflict'] as const)(
    'R47: %s is final: it throws, and ends the lease',
    async (code) => {
      const status = code === 'stale' ? 412 : 409
      const known = { highestGeneration: 9, operationApplied: true }
      const { sent, outcome } = await fetching(
        bench,
        [refusal(status, code, known)],
        async (lease) => {
          const error = await lease.fetch(PLACE, POST).catch((reason: unknown) => reason)
          expect(error).toBeInstanceOf(WriteRefusedError)
          const own = { jobId: 'j', generation: 1, operationId: 'op-1', retryable: false }
          expect(error).toMatchObject({ code, ...own, ...known })
          expect(lease.signal.reason).toMatchObject({ reason: 'fenced', cause: error })
          await expect(lease.fetch(PLACE, POST)).rejects.toBeInstanceOf(LeaseLostError)
        },
      )
      expect(sent).toHaveLength(1)
      expect(outcome).toEqual({ status: 'lost', reason: 'fenced' })
    },
  )

  it.each([
    [412, 'sealed'],
    [422, 'mismatch'],
    [409, 'outcome_unknown'],
    [428, 'token_required'],
    [400, 'token_malformed'],
    [403, 'token_rejected'],
    [403, 'forbidden'],
  ] as const)('%i %s throws, is not repeated, and leaves the lease', async (status, code) => {
    const { sent } = await fetching(bench, [refusal(status, code)], async (lease) => {
      await expect(lease.fetch(PLACE, POST)).rejects.toMatchObject({ code, retryable: false })
      lease.assertHeld()
    })
    expect(sent).toHaveLength(1)
  })

  it('R47: what is in flight is asked again as told, under the same key', async () => {
    const busy = refusal(409, 'in_flight', {}, { 'Retry-After': '3' })
    const { sent, outcome } = await fetching(bench, [busy, busy, ok()], async (lease) => {
      return (await lease.fetch(PLACE, { ...POST, body: 'b' })).status
    })
    expect(outcome).toMatchObject({ value: 201 })
    expect(sent.map(({ at }) => at - (sent[0]?.at ?? 0))).toEqual([0, 3_000, 6_000])
    expect(new Set(sent.map(({ headers }) => headers.get('Idempotency-Key'))).size).toBe(1)
    expect(new Set(sent.map(({ headers }) => headers.get('Fencing-Token'))).size).toBe(1)
    expect(sent.map(({ body }) => body)).toEqual(['b', 'b', 'b'])
  })

  it('what stays in flight is thrown in the end, as long as it was to be tried', async () => {
    const busy = refusal(409, 'in_flight', {}, { 'Retry-After': '2' })
    const { sent } = await fetching(
      bench,
      [busy],
      async (lease, sent) => {
        const short = lease.fetch(PLACE, { ...POST, retryForMs: 5_000 })
        await expect(short).rejects.toMatchObject({ code: 'in_flight', retryAfterMs: 2_000 })
        expect(sent).toHaveLength(3)
        const once = lease.fetch(PLACE, { ...POST, retryForMs: 0 })
        await expect(once).rejects.toMatchObject({ code: 'in_flight' })
        expect(sent).toHaveLength(4)
        await expect(lease.fetch(PLACE, POST)).rejects.toMatchObject({ code: 'in_flight' })
      },
      { retryForMs: 9_000 },
    )
    expect(sent).toHaveLength(4 + 5)
  })

  it('is repeated for as long as told, and to the very end', async () => {
    const busy = refusal(409, 'in_flight', {}, { 'Retry-After': '2' })
    const { sent } = await fetching(bench, [busy], async (lease) => {
      const call = lease.fetch(PLACE, { ...POST, retryForMs: 4_000 })
      await expect(call).rejects.toMatchObject({ code: 'in_flight' })
    })
    expect(sent.map(({ at }) => at - (sent[0]?.at ?? 0))).toEqual([0, 2_000, 4_000])
  })

  it('a store that is away is asked again, and thrown as such in the end', async () => {
    const away = refusal(503, 'store_unavailable', { retryable: true })
    const { sent } = await fetching(bench, [away, ok(), away], async (lease) => {
      expect((await lease.fetch(PLACE, POST)).status).toBe(201)
      const error = lease.fetch(PLACE, { ...POST, retryForMs: 1_000 })
      await expect(error).rejects.toBeInstanceOf(StoreUnavailableError)
    })
    expect(sent.length).toBeGreaterThan(4)
  })

  it('a read is repeated although the answer does not call it retryable', async () => {
    const away = refusal(503, 'store_unavailable', { retryable: false })
    const { sent } = await fetching(bench, [away, ok(), away], async (lease) => {
      expect((await lease.fetch(PLACE)).status).toBe(201)
      const error = await lease.fetch(PLACE, POST).catch((reason: unknown) => reason)
      expect(error).toMatchObject({ code: 'store_unavailable', retryable: false })
    })
    expect(sent).toHaveLength(3)
  })

  it('hands over what the application answers, its problems included', async () => {
    const own = [
      new Response('no', { status: 500, headers: APPLIED }),
      new Response('later', { status: 503, headers: APPLIED }),
      new Response('no', { status: 404 }),
      // Its own use of the words, on a guarded route that let it in.
      refusal(409, 'conflict', {}, { 'Fencing-Verdict': 'passed;highest=1' }),
      refusal(412, 'stale', {}, { 'Fencing-Verdict': 'applied' }),
      // A verdict that does not go with the status is not a refusal: it was only reported.
      refusal(500, 'stale'),
    ]
    for (const response of own) {
      bench.store.rows.clear()
      const { sent, outcome } = await fetching(bench, [response], async (lease) => {
        const answer = await lease.fetch(PLACE, POST)
        lease.assertHeld()
        return [answer.status, await answer.text()]
      })
      expect(sent).toHaveLength(1)
      expect(outcome).toMatchObject({ value: [response.status, await response.clone().text()] })
    }
  })

  it('knows a refusal by its header alone', async () => {
    const bare = (status: number, verdict: string) =>
      new Response(null, { status, headers: { 'Fencing-Verdict': verdict } })
    await fetching(bench, [bare(412, 'sealed;highest=3')], async (lease) => {
      const error = lease.fetch(PLACE, { method: 'HEAD' })
      await expect(error).rejects.toMatchObject({ code: 'sealed', highestGeneration: 3 })
    })
    await fetching(
      bench,
      [bare(503, 'store_unavailable')],
      async (lease) => {
        const error = lease.fetch(PLACE, { ...POST, retryForMs: 0 })
        const says = new StoreUnavailableError('the destination cannot reach its store')
        await expect(error).rejects.toThrow(says)
      },
      { jobId: 'k' },
    )
  })
})

describe('a refusal whose body does not come', () => {
  const begun = (status: number, code: string, headers = {}) => {
    const head = refusal(status, code, {}, headers)
    let source: ReadableStreamDefaultController | undefined
    const body = new ReadableStream({
      start(controller) {
        source = controller
        controller.enqueue(new TextEncoder().encode('{"code":'))
      },
    })
    const response = new Response(body, { status, headers: head.headers })
    return { response, breakOff: () => source?.error(new TypeError('terminated')) }
  }

  it('goes by its head once its time is up', async () => {
    const { sent, outcome } = await fetching(
      bench,
      [() => begun(412, 'sealed').response],
      async (lease) => {
        const at = Date.now()
        const error = lease.fetch(PLACE, { ...POST, timeoutMs: 1_000 })
        await expect(error).rejects.toMatchObject({ code: 'sealed', highestGeneration: 9 })
        return Date.now() - at
      },
    )
    expect(sent).toHaveLength(1)
    expect(outcome).toMatchObject({ value: 1_000 })
  })

  it('is asked again where its head says so, and as late as it says', async () => {
    const busy = () => begun(409, 'in_flight', { 'Retry-After': '3' }).response
    const { sent } = await fetching(bench, [busy, ok()], async (lease) => {
      expect((await lease.fetch(PLACE, { ...POST, timeoutMs: 1_000 })).status).toBe(201)
    })
    expect(sent.map(({ at }) => at - (sent[0]?.at ?? 0))).toEqual([0, 4_000])
  })

  it('goes by its head where the body breaks off', async () => {
    const cut = () => {
      const { response, breakOff } = begun(412, 'stale')
      setTimeout(breakOff, 100)
      return response
    }
    const { sent, outcome } = await fetching(bench, [cut], (lease) => lease.fetch(PLACE, POST))
    expect(sent).toHaveLength(1)
    expect(outcome).toMatchObject({ status: 'lost', reason: 'fenced' })
  })

  it('of a sending that heeds no signal goes by its head as well', async () => {
    const slow: Answer = async () => {
      await bench.store.wait(2_000)
      return begun(412, 'sealed').response
    }
    await fetching(bench, [slow], async (lease) => {
      const error = lease.fetch(PLACE, { ...POST, timeoutMs: 1_000 })
      await expect(error).rejects.toMatchObject({ code: 'sealed' })
    })
  })

  it('ends with the call that is given up meanwhile, for the reason of that', async () => {
    const reason = new Error('enough')
    const mine = new AbortController()
    const { response, breakOff } = begun(412, 'stale')
    const { outcome } = await fetching(bench, [() => response], async (lease) => {
      const call = lease.fetch(PLACE, { ...POST, signal: mine.signal })
      setTimeout(() => {
        mine.abort(reason)
        breakOff()
      }, 1_000)
      await expect(call).rejects.toBe(reason)
      lease.assertHeld()
    })
    expect(outcome).toMatchObject({ status: 'completed' })
  })

  it('is told, if it has come, though the call was given up before', async () => {
    // A worker that wakes up sends all the same: what the destination says is worth more.
    const mine = new AbortController()
    const heedless: Answer = () => {
      mine.abort(new Error('enough'))
      return refusal(412, 'stale')
    }
    await fetching(bench, [heedless], async (lease) => {
      const error = lease.fetch(PLACE, { ...POST, signal: mine.signal })
      await expect(error).rejects.toMatchObject({ code: 'stale', highestGeneration: 9 })
    })
  })

  it('leaves the body of any other answer its time', async () => {
    const { response } = begun(500, 'nonsense')
    let signal: AbortSignal | null | undefined
    const late: Answer = ({ init }) => {
      signal = init.signal
      return response
    }
    await fetching(bench, [late], async (lease) => {
      await lease.fetch(PLACE, { ...POST, timeoutMs: 1_000 })
      await bench.store.wait(5_000)
      expect(signal?.aborted).toBe(false)
    })
  })
})

describe('the verdict on a success', () => {
  it.each([undefined, 'nonsense;', '"applied"', ''])('must be there: %s', async (verdict) => {
    const faults: unknown[] = []
    const listener = (fault: unknown) => faults.push(fault)
    subscribe('writefence:fault', listener)
    const headers = verdict === undefined ? {} : { 'Fencing-Verdict': verdict }
    await fetching(bench, [ok(headers as Record<string, string>)], async (lease) => {
      const says = /^POST .* without a Fencing-Verdict: .*\(requireVerdict: false accepts that\)$/
      await expect(lease.fetch(PLACE, POST)).rejects.toThrow(says)
      const lifted = await lease.fetch(PLACE, { ...POST, requireVerdict: false })
      expect(lifted.status).toBe(201)
    })
    unsubscribe('writefence:fault', listener)
    expect(faults).toEqual([
      expect.objectContaining({ fault: 'unguarded_success', jobId: 'j', operationId: 'op-1' }),
    ])
  })

  it('is not asked of what is no success', async () => {
    const moved = new Response(null, { status: 303, headers: { Location: '/elsewhere' } })
    const { sent } = await fetching(bench, [moved], async (lease) => {
      expect((await lease.fetch(PLACE, POST)).status).toBe(303)
      await lease.fetch(PLACE, { ...POST, redirect: 'follow' })
    })
    expect(sent.map(({ init }) => init.redirect)).toEqual(['manual', 'follow'])
  })
})
