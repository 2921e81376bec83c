import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { WriteGuard } from 'writefence'
import { openSqlite, SqliteFenceStore, SqliteLeaseStore } from 'writefence/sqlite'
import { type FenceCall, spellFenceCall } from '../../src/wire/fence-messages.ts'
import {
  type LeaseCall,
  type LeaseValue,
  readLeaseCall,
  spellLeaseAnswer,
  spellLeaseCall,
} from '../../src/wire/lease-messages.ts'
import { nodesOf } from '../house/project.ts'
import { blocks, section, spans, table } from './markdown.ts'

const PROTOCOL = 'docs/protocol.md'

const JOB = { jobId: 'JOB', owner: 'w', generation: 1, leaseId: 'lease' }
const CLAIM = { jobId: 'JOB', owner: 'w', ttlMs: 1000, leaseId: 'lease' }
const CALLS: Readonly<Record<LeaseCall['verb'], LeaseCall>> = {
  claim: { verb: 'claim', ...CLAIM },
  renew: { verb: 'renew', ...JOB, ttlMs: 1000 },
  complete: { verb: 'complete', ...JOB },
  release: { verb: 'release', ...JOB },
  get: { verb: 'get', jobId: 'JOB' },
  list: { verb: 'list', status: 'leased', owner: 'w', expired: true, after: 'JOB', limit: 5 },
  raise: { verb: 'raise', jobId: 'JOB', atLeast: 7 },
  'force-release': { verb: 'force-release', jobId: 'JOB' },
  reopen: { verb: 'reopen', jobId: 'JOB' },
  prune: { verb: 'prune', olderThanMs: 1, limit: 5 },
}

/** The routes that a section names, `…/x` standing for the path before it with another verb. */
function routesIn(heading: string): string[] {
  return spans(section(PROTOCOL, heading))
    .map((code) => code.replace(/^…/, 'POST /leases/:jobId'))
    .filter((code) => /^(GET|POST) \//.test(code))
}

const spelled = ({ method, target }: { method: string; target: string }): string =>
  `${method} ${target.replace('/JOB', '/:jobId').replace(/=[^&]*/g, '')}`

describe('the lease service', () => {
  it('has the routes that the client calls, and no others', () => {
    const called = Object.values(CALLS).map((call) => spelled(spellLeaseCall(call)))
    expect(routesIn('### Lease service').sort()).toEqual(called.sort())
  })

  it.each(['claim', 'renew', 'complete', 'release', 'get'] as const)(
    'takes of %s the body that the table says',
    (verb) => {
      const { method, target, body = {} } = spellLeaseCall(CALLS[verb])
      const [, members] = rowOf(verb)
      expect(Object.keys(body as object).sort()).toEqual(spans(members).sort())
      expect(readLeaseCall({ method, target, body })).toEqual(CALLS[verb])
    },
  )

  it('answers as the table says', async () => {
    for (const [verb, values] of Object.entries(await answersOfAStore())) {
      const given = values.map((value) => shapeOf(spellLeaseAnswer(verb as 'get', value)))
      const [, , documented = ''] = rowOf(verb as LeaseCall['verb'])
      expect(shapesIn(documented), verb).toEqual(given)
    }
  })
})

function rowOf(verb: LeaseCall['verb']): string[] {
  const route = spelled(spellLeaseCall(CALLS[verb]))
  const found = table(PROTOCOL, '### Lease service').find(([cell]) => spans(cell)[0] === route)
  return found ?? expect.fail(`there is no row ${route}`)
}

interface Shape {
  readonly http: number
  readonly status: string | undefined
  readonly members: readonly string[]
  readonly lease: readonly string[]
  readonly waits: boolean
}

/** Every kind of answer that a store gives, in the order of the table. */
async function answersOfAStore(): Promise<Record<string, LeaseValue[]>> {
  const store = new SqliteLeaseStore(openSqlite(':memory:'))
  const claim = (jobId: string) => store.claim({ ...CLAIM, jobId })
  const key = (jobId: string) => ({ ...JOB, jobId, ttlMs: 1000 })
  const claimed = await claim('JOB')
  const held = await store.claim({ ...CLAIM, leaseId: 'another' })
  const renewed = await store.renew(key('JOB'))
  const leased = await store.get('JOB')
  const completed = await store.complete(key('JOB'))
  await claim('given back')
  return {
    claim: [claimed, held, await claim('JOB')],
    renew: [renewed, await store.renew(key('JOB'))],
    complete: [completed, await store.complete(key('another'))],
    release: [await store.release(key('given back')), await store.release(key('another'))],
    get: [leased, await store.get('another')],
  }
}

function shapeOf(answer: ReturnType<typeof spellLeaseAnswer>): Shape {
  const body = answer.body as { status: string; lease?: object }
  return {
    http: answer.status,
    // Of a record it tells the state of the job, not what the answer is.
    status: 'jobId' in body ? undefined : body.status,
    members: Object.keys(body as object).sort(),
    lease: Object.keys(body.lease ?? {}).sort(),
    waits: answer.retryAfterMs !== undefined,
  }
}

/** Reads `201 { status: 'claimed', lease }`: what is not spelled out of a lease is all of it. */
function shapesIn(cell: string): Shape[] {
  return cell.split(';').map((answer) => {
    const [, http = '', code = '', more = ''] = /^\s*(\d+) `([^`]*)`(.*)$/.exec(answer) ?? []
    const { nodes } = nodesOf({ path: 'answer.ts', text: `(${code.replaceAll('?', '')})` })
    const [whole, nested] = nodes.filter((node) => ts.isObjectLiteralExpression(node))
    const names = (node = whole) => (node?.properties ?? []).map((one) => one.name?.getText() ?? '')
    const members = names().sort()
    return {
      http: Number(http),
      status: /status: '(\w+)'/.exec(code)?.[1],
      members,
      lease: members.includes('lease') ? (nested ? names(nested) : LEASE).sort() : [],
      waits: more.includes('Retry-After'),
    }
  })
}

const LEASE = ['jobId', 'generation', 'leaseId', 'owner', 'leaseUntil', 'ttlMs']

describe('the fence service', () => {
  it('has the routes that the client calls, and no others', () => {
    const verbs: readonly FenceCall['verb'][] = ['advance', 'seal', 'inspect']
    const called = verbs.map((verb) => spelled(spellFenceCall({ verb, jobId: 'JOB' })))
    expect(routesIn('### Fence service').sort()).toEqual(called.sort())
  })

  it('answers as the page shows', async () => {
    const [shown = ''] = blocks(section(PROTOCOL, '### Fence service'), 'json')
    const guard = new WriteGuard(new SqliteFenceStore(openSqlite(':memory:')))
    const token = { jobId: 'import-42', generation: 7, leaseId: 'lease-7' }
    const running = guard.effect({ token }, async () => {
      const state = await guard.advance({ ...token, generation: 8, leaseId: 'lease-8' })
      expect(state).toEqual(JSON.parse(shown))
    })
    await running
  })
})
