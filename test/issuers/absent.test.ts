import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { root } from '../house/project.ts'

// Port 1 of this machine: nobody listens there.
const NOWHERE = { ETCD_URL: 'http://127.0.0.1:1', ZOOKEEPER: '127.0.0.1:1', PGPORT: '1' }

function run(example: string, env: Readonly<Record<string, string>>) {
  const args = ['--import', 'tsx', `${root}examples/${example}`]
  const { PATH } = process.env
  return promisify(execFile)(process.execPath, args, {
    cwd: root,
    env: { PATH, ...NOWHERE, ...env },
  })
}

describe.each([
  ['08-etcd-election.ts', 'etcd at http://127.0.0.1:1'],
  ['09-zookeeper-lock.ts', 'ZooKeeper at 127.0.0.1:1'],
  ['10-postgres-sequence.ts', 'PostgreSQL at 127.0.0.1:1'],
])('%s, where no server answers', (example, server) => {
  it('says in one line what was not run, and ends well', async () => {
    const { stdout, stderr } = await run(example, {})
    expect(stdout).toMatch(new RegExp(`^not run, since ${server} does not answer: .+\n$`))
    expect(stderr).toBe('')
  })

  it.each([{ CI: 'true' }, { REQUIRE_ENGINES: '1' }])('fails with %j', async (env) => {
    await expect(run(example, env)).rejects.toMatchObject({ code: 1 })
  })
})
