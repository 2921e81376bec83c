import { describe, expect, it } from 'vitest'
import { StoreUnavailableError } from 'writefence'
import { failure, intent, refused } from '../../../src/conformance/fence-destination.ts'
import { faultyHandle } from '../../support/faulty-handle.ts'
import {
  open,
  SqliteDestination,
  stopMonotonicTime,
  temporaryFile,
} from '../../support/sqlite-destination.ts'

/** A destination that counts its commits. */
function counting(options = {}) {
  const path = temporaryFile()
  const db = open(path)
  const commits: number[] = []
  const marks: number[] = []
  const { handle } = faultyHandle(db)
  const counted = new Proxy(handle, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (name !== 'prepare' || typeof value !== 'function') return value
      return (sql: string) => {
        const statement = value(sql) as { run(): unknown; get(): unknown }
        if (sql.startsWith('UPDATE temp.writefence_marker')) {
          const get = () => {
            marks.push(commits.length)
            return statement.get()
          }
          return { safeIntegers: () => {}, get }
        }
        if (sql !== 'COMMIT') return statement
        return {
          safeIntegers: () => {},
          run: () => {
            statement.run()
            commits.push(d.log().length)
          },
        }
      }
    },
  })
  const d = new SqliteDestination(counted, options)
  const advance = stopMonotonicTime()
  return { d, commits, marks, path, advance }
}

const numbers = (count: number) => Array.from({ length: count }, (_, i) => String(i))

describe('calls of one turn of the event loop', () => {
  it('share one commit, and are answered after it', async () => {
    const { d, commits, path } = counting()
    const other = open(path)
    const seen: number[] = []
    await Promise.all(
      numbers(64).map(async (id) => {
        await d.write(intent(1, id))
        seen.push(d.log(other).length)
      }),
    )
    expect(commits).toEqual([64])
    expect(new Set(seen)).toEqual(new Set([64]))
  })

  it('take place in the order in which they came, in groups of bounded size', async () => {
    const { d, commits } = counting()
    const answered: string[] = []
    await Promise.all(
      numbers(1000).map(async (id) => {
        await d.write(intent(1, id))
        answered.push(id)
      }),
    )
    expect(d.log()).toEqual(numbers(1000))
    expect(answered).toEqual(numbers(1000))
    expect(commits).toEqual([256, 512, 768, 1000])
  })

  it('let the event loop turn between two groups', async () => {
    const { d } = counting()
    const writes = Promise.all(numbers(600).map((id) => d.write(intent(1, id))))
    const seen: number[] = []
    while (seen.at(-1) !== 600) {
      await new Promise((resolve) => setImmediate(resolve))
      seen.push(d.log().length)
    }
    await writes
    expect(seen).toEqual(expect.arrayContaining([256, 512, 600]))
  })

  it('do not wait for more than some milliseconds of each other', async () => {
    const { d, commits, advance } = counting()
    const calls = numbers(4).map((id) =>
      d.guard.write(intent(1, id), (tx) => {
        advance(5)
        d.appends(id)(tx)
      }),
    )
    await Promise.all(calls)
    expect(commits).toEqual([2, 4])
  })

  it('leave one mark in their transaction, and who is alone leaves none', async () => {
    const { d, commits, marks } = counting()
    await d.write(intent(1, 'alone'))
    await Promise.all(['a', 'b', 'c'].map((id) => d.write(intent(1, id))))
    await d.write(intent(1, 'alone again'))
    expect(commits).toEqual([1, 4, 5])
    expect(marks).toEqual([1])
  })

  it('see each other: a later one is judged by the fence of an earlier one', async () => {
    const { d } = counting()
    const newer = d.write(intent(2, 'newer'))
    await refused(d.write(intent(1, 'older')), 'stale')
    expect((await newer).status).toBe('applied')
  })
})

describe('groupCommit: false', () => {
  it('commits each call by itself, in order', async () => {
    const { d, commits } = counting({ groupCommit: false })
    await Promise.all(numbers(5).map((id) => d.write(intent(1, id))))
    expect(commits).toEqual([1, 2, 3, 4, 5])
    expect(d.log()).toEqual(numbers(5))
  })
})

describe('writeSync', () => {
  it('is durable when it returns, and answers like write', () => {
    const { d, commits, path } = counting()
    const write = () => d.guard.writeSync(intent(2, 'x'), d.appends('x', 'r'))
    expect(write()).toMatchObject({ status: 'applied', result: 'r' })
    expect(d.log(open(path))).toEqual(['x'])
    expect(commits).toEqual([1])
    expect(write()).toMatchObject({ status: 'replayed', result: 'r' })
    expect(() => d.guard.writeSync(intent(1, 'y'), d.appends('y'))).toThrow(/stale/)
  })

  it('rethrows the error of its effect, keeps the fence, and undoes the rest', () => {
    const { d } = counting()
    const boom = new Error('boom')
    const fails = () =>
      d.guard.writeSync(intent(2, 'x'), (tx) => {
        d.appends('half')(tx)
        throw boom
      })
    expect(fails).toThrow(boom)
    expect(d.log()).toEqual([])
    expect(() => d.guard.writeSync(intent(1, 'y'), d.appends('y'))).toThrow(/stale/)
  })

  it('refuses an async function before it is called', () => {
    const { d } = counting()
    let called = false
    const apply = async () => {
      called = true
    }
    expect(() => d.guard.writeSync(intent(2, 'x'), apply as never)).toThrow(TypeError)
    expect(called).toBe(false)
  })

  it('on a closed store is store_unavailable', async () => {
    const { d } = counting()
    await d.guard.close()
    const retryable = expect.objectContaining({ retryable: true })
    expect(() => d.guard.writeSync(intent(1, 'x'), d.appends('x'))).toThrow(retryable)
    expect(() => d.guard.writeSync(intent(1), d.appends('x'))).toThrow('the store is closed')
    const once = expect.objectContaining({ retryable: false })
    expect(() => d.guard.writeSync(intent(1), d.appends('x'))).toThrow(once)
  })
})

describe('close', () => {
  it('withdraws what is queued: none of it takes place', async () => {
    const { d } = counting()
    const calls = ['a', 'b'].map((id) => failure(d.write(intent(1, id))))
    await d.guard.close()
    for (const error of await Promise.all(calls)) {
      expect(error).toBeInstanceOf(StoreUnavailableError)
    }
    for (const call of [d.write(intent(1, 'c')), d.guard.inspect('job'), d.guard.unsettled()]) {
      const error = await failure(call)
      expect(error).toBeInstanceOf(StoreUnavailableError)
      expect(error).toMatchObject({ message: 'the store is closed' })
    }
    expect(d.log()).toEqual([])
    expect(d.db.open).toBe(true)
  })

  it('withdraws what waits for a busy handle', async () => {
    const { d } = counting()
    d.db.exec('BEGIN')
    const call = failure(d.write(intent(1, 'a')))
    await new Promise((resolve) => setImmediate(resolve))
    await d.guard.close()
    expect(await call).toBeInstanceOf(StoreUnavailableError)
    d.db.exec('COMMIT')
    expect(d.log()).toEqual([])
  })

  it('of the handle makes every call store_unavailable, queued ones too', async () => {
    const { d } = counting()
    const call = failure(d.write(intent(1, 'a')))
    d.db.close()
    expect(await call).toBeInstanceOf(StoreUnavailableError)
    expect(await failure(d.write(intent(1, 'b')))).toBeInstanceOf(StoreUnavailableError)
    expect(await failure(d.guard.inspect('job'))).toBeInstanceOf(StoreUnavailableError)
  })
})
