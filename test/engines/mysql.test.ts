import type { PoolConnection } from 'mysql2/promise'
import { describe, it } from 'vitest'
import { fenceStoreLaws, leaseStoreLaws } from 'writefence/conformance'
import { describeEngine } from './engine.ts'
import { MysqlBench } from './mysql-bench.ts'

const bench = await MysqlBench.open('laws')

describeEngine('MariaDB', bench.problem, () => {
  describe('the laws of a lease store', () => {
    it.each(leaseStoreLaws)('$name', async (law) => {
      await bench.empty()
      await law.run({ open: async (now) => bench.leases({ now }) })
    })
  })

  describe('the laws of a fence store', () => {
    it.each(fenceStoreLaws)('$name', async (law) => {
      await bench.empty()
      await law.run<PoolConnection, 'async'>({
        open: async (now) => bench.fences({ now }),
        append: (tx, text) => bench.append(tx, text),
        log: () => bench.log(),
        transaction: (body) => bench.transaction(body),
      })
    })
  })
})
