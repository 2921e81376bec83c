import { describe, expect, it } from 'vitest'
import { StoreUnavailableError } from 'writefence'
import {
  isBusy,
  isConstraint,
  isOccupied,
  unavailable,
} from '../../../src/storage/sqlite/sqlite-database.ts'

const coded = (code: unknown) => Object.assign(new Error('of the driver'), { code })
const occupied = new TypeError('This database connection is busy executing a query')

describe('what the driver throws', () => {
  it.each<[string, unknown, is: 'busy' | 'constraint' | 'occupied' | 'neither']>([
    ["another connection's lock", coded('SQLITE_BUSY'), 'busy'],
    ['a snapshot that is out of date', coded('SQLITE_BUSY_SNAPSHOT'), 'busy'],
    ['a lock within a shared cache', coded('SQLITE_LOCKED_SHAREDCACHE'), 'busy'],
    ['a deferred foreign key', coded('SQLITE_CONSTRAINT_FOREIGNKEY'), 'constraint'],
    ['an iterator that is open', occupied, 'occupied'],
    ['another mistake', new TypeError('The database connection is not open'), 'neither'],
    ['a full disk', coded('SQLITE_FULL'), 'neither'],
    ['a code that is none', coded(5), 'neither'],
    ['a code that only ends like one', coded('NOT_SQLITE_BUSY'), 'neither'],
    ['an error without a code', new Error('busy executing a query'), 'neither'],
    ['null', null, 'neither'],
    ['undefined', undefined, 'neither'],
    ['text', 'SQLITE_BUSY', 'neither'],
  ])('%s', (_, error, is) => {
    expect(isBusy(error)).toBe(is === 'busy')
    expect(isConstraint(error)).toBe(is === 'constraint')
    expect(isOccupied(error)).toBe(is === 'occupied')
  })

  it('is store_unavailable for the caller, with the reason', () => {
    const error = coded('SQLITE_IOERR')
    expect(unavailable(error)).toMatchObject({ message: 'SQLite: of the driver', cause: error })
    expect(unavailable('text')).toMatchObject({ message: 'SQLite: text', cause: 'text' })
  })

  it('is not told twice', () => {
    const error = new StoreUnavailableError('the store is closed')
    expect(unavailable(error)).toBe(error)
  })
})
