/** Servers of the test's own, which it may stop, restore and start anew. */

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { onTestFinished, vi } from 'vitest'
import { freePort } from '../support/free-port.ts'

const run = promisify(execFile)
/** Where Debian's package has it, with all that it needs. */
const ZOOKEEPER = '/usr/share/java/zookeeper.jar'

/** @throws Error where there is no etcd that could be started and restored */
export async function findEtcd(): Promise<void> {
  await Promise.all([run('etcd', ['--version']), run('etcdctl', ['version'])])
}

/** @throws Error where there is no ZooKeeper that could be started */
export async function findZooKeeper(): Promise<void> {
  await run('java', ['-version'])
  if (!existsSync(ZOOKEEPER)) throw new Error(`there is no ${ZOOKEEPER}`)
}

/** A process in a folder of its own; both are gone after the test. */
class OwnServer {
  readonly folder = mkdtempSync(join(tmpdir(), 'writefence-issuer-'))
  #process: ChildProcess | undefined

  constructor() {
    onTestFinished(async () => {
      await this.stop()
      rmSync(this.folder, { recursive: true })
    })
  }

  protected run(command: string, args: readonly string[]): void {
    this.#process = spawn(command, args, { cwd: this.folder, stdio: 'ignore' })
  }

  async stop(): Promise<void> {
    const running = this.#process
    this.#process = undefined
    if (running === undefined || running.exitCode !== null) return
    const gone = once(running, 'exit')
    running.kill('SIGKILL')
    await gone
  }
}

export class EtcdServer extends OwnServer {
  readonly url: string
  readonly #peer: string

  static async prepare(): Promise<EtcdServer> {
    const [client, peer] = [await freePort(), await freePort()]
    return new EtcdServer(`http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`)
  }

  private constructor(url: string, peer: string) {
    super()
    this.url = url
    this.#peer = peer
  }

  /** The options that a member is made with, at its start or when it is restored. */
  get #member(): string[] {
    const cluster = ['--initial-cluster', `one=${this.#peer}`]
    return ['--name', 'one', ...cluster, '--initial-advertise-peer-urls', this.#peer]
  }

  /** Starts it on a data folder, and waits until it answers. */
  async start(data: string): Promise<void> {
    const clients = ['--listen-client-urls', this.url, '--advertise-client-urls', this.url]
    const peers = ['--listen-peer-urls', this.#peer]
    this.run('etcd', [...this.#member, ...clients, ...peers, '--data-dir', data])
    await vi.waitFor(() => fetch(`${this.url}/version`), { timeout: 30_000, interval: 100 })
    // It answers that before it has a leader.
    await this.#ctl('endpoint', 'health')
  }

  async backUp(file: string): Promise<void> {
    await this.#ctl('snapshot', 'save', file)
  }

  /** Makes a data folder of a backup. */
  async restore(file: string, data: string): Promise<void> {
    await this.#ctl('snapshot', 'restore', file, ...this.#member, '--data-dir', data)
  }

  async #ctl(...args: string[]): Promise<void> {
    await run('etcdctl', ['--endpoints', this.url, ...args], { cwd: this.folder })
  }
}

/** An ensemble of one: its only server is elected again at every start, in a new epoch. */
export class ZooKeeperServer extends OwnServer {
  readonly address: string
  readonly #ports: readonly number[]

  static async prepare(): Promise<ZooKeeperServer> {
    return new ZooKeeperServer([await freePort(), await freePort(), await freePort()])
  }

  private constructor(ports: readonly number[]) {
    super()
    this.#ports = ports
    this.address = `127.0.0.1:${ports[0]}`
  }

  /** Starts it on its folder, or on nothing; a client waits until it answers. */
  start({ empty = false } = {}): void {
    const [client, peer, election] = this.#ports
    const data = join(this.folder, 'data')
    if (empty) rmSync(data, { recursive: true, force: true })
    mkdirSync(data, { recursive: true })
    writeFileSync(join(data, 'myid'), '1')
    const config = [
      'tickTime=500',
      'initLimit=10',
      'syncLimit=5',
      `dataDir=${data}`,
      `clientPort=${client}`,
      'clientPortAddress=127.0.0.1',
      'admin.enableServer=false',
      'standaloneEnabled=false',
      `server.1=127.0.0.1:${peer}:${election}`,
    ]
    writeFileSync(join(this.folder, 'zoo.cfg'), config.join('\n'))
    const main = 'org.apache.zookeeper.server.quorum.QuorumPeerMain'
    this.run('java', ['-Xmx128m', '-cp', ZOOKEEPER, main, 'zoo.cfg'])
  }
}
