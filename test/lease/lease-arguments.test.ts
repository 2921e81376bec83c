import { describe, expect, it } from 'vitest'
import {
  checkClaim,
  checkLeaseKey,
  checkLeasePrune,
  checkLeaseQuery,
  checkRenewal,
} from '../../src/lease/lease-arguments.ts'

describe('what a lease store is told', () => {
  const checks: readonly (readonly [name: string, check: (value: unknown) => unknown])[] = [
    ['request', checkClaim],
    ['lease', checkLeaseKey],
    ['lease', checkRenewal],
    ['query', checkLeaseQuery],
    ['request', checkLeasePrune],
  ]

  it.each(checks)('is an object, or refused by name: %s', (name, check) => {
    for (const value of [null, 7, 'j', true, () => {}]) {
      expect(() => check(value)).toThrow(new TypeError(`${name} must be an object`))
    }
  })

  it('may leave out its query', () => {
    expect(checkLeaseQuery()).toEqual({ limit: 100 })
  })
})
