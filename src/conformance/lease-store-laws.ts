import { argumentLaws } from './lease-argument-laws.ts'
import { claimLaws } from './lease-claim-laws.ts'
import { holderLaws } from './lease-holder-laws.ts'
import { operatorLaws } from './lease-operator-laws.ts'
import type { LeaseStoreLaw } from './lease-store-context.ts'

/** The laws of the lease store port: run each one on a fresh context, with any test runner. */
export const leaseStoreLaws: readonly LeaseStoreLaw[] = [
  ...claimLaws,
  ...holderLaws,
  ...operatorLaws,
  ...argumentLaws,
]
