import { beforeEach, expect, it } from 'vitest'
import { WriteGuard, type WriteIntent } from 'writefence'
import { start } from '../processes/spawn.ts'
import { mysqlServer } from '../support/servers.ts'
import { describeEngine } from './engine.ts'
import { MysqlBench } from './mysql-bench.ts'

const bench = await MysqlBench.open('processes')

const intent = (generation: number, operationId: string): WriteIntent => ({
  token: { jobId: 'job', generation, leaseId: 'b' },
  operationId,
})

/** A process that is in the middle of a write of the job, at generation 7. */
async function holding() {
  const { host, port, user, password } = mysqlServer
  const child = start('mysql-writer.ts', host, `${port}`, user, password, bench.database, 'log')
  expect(await child.line()).toBe('holding')
  return child
}

describeEngine('MariaDB and processes that', bench.problem, () => {
  beforeEach(() => bench.empty())

  it('are stopped in the middle of a write: their job goes on without them', async () => {
    const child = await holding()
    child.process.kill('SIGSTOP')
    const guard = new WriteGuard(bench.fences())
    const outcome = await guard.write(intent(8, 'x'), (tx) => bench.append(tx, 'of 8'))
    expect(outcome).toMatchObject({ status: 'applied', highestGeneration: 8 })
    child.process.kill('SIGCONT')
    expect(await child.line()).toBe('store_unavailable')
    expect(await bench.log()).toEqual(['of 8'])
  })

  it('R71: are killed in the middle of a write: nothing is left, and nobody waits', async () => {
    const child = await holding()
    child.process.kill('SIGKILL')
    await child.ended
    const guard = new WriteGuard(bench.fences({ timeoutMs: 1000 }))
    const outcome = await guard.write(intent(6, 'x'), (tx) => bench.append(tx, 'of 6'))
    expect(outcome).toMatchObject({ status: 'applied', highestGeneration: 6 })
    expect(await bench.log()).toEqual(['of 6'])
  })
})
