/** A Redis server of the test's own, which it may flush, kill, restore and starve. */

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'
import { freePort } from '../support/free-port.ts'

export class RedisServer {
  readonly port: number
  readonly folder: string
  readonly #args: readonly string[]
  #process: ChildProcess | undefined
  #redis: Redis | undefined

  private constructor(port: number, folder: string, args: readonly string[]) {
    this.port = port
    this.folder = folder
    this.#args = args
  }

  /** @throws Error where there is no redis-server that could be started */
  static async version(): Promise<string> {
    return (await promisify(execFile)('redis-server', ['--version'])).stdout
  }

  /** Starts one that is gone after the test; `args` are options of redis-server. */
  static async start(...args: string[]): Promise<RedisServer> {
    const folder = mkdtempSync(join(tmpdir(), 'writefence-redis-'))
    const server = new RedisServer(await freePort(), folder, args)
    onTestFinished(async () => {
      await server.kill()
      rmSync(folder, { recursive: true })
    })
    await server.restart()
    return server
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  /** A connection of the test's own. */
  get redis(): Redis {
    if (this.#redis === undefined) throw new Error('the server is not running')
    return this.#redis
  }

  async restart(): Promise<void> {
    const own = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.folder]
    const quiet = ['--save', '', '--logfile', 'log']
    const running = spawn('redis-server', [...own, ...quiet, ...this.#args], { stdio: 'ignore' })
    this.#process = running
    const redis = new Redis(this.port, { retryStrategy: () => 20, maxRetriesPerRequest: null })
    redis.on('error', () => {})
    const exited = once(running, 'exit').then(() => {
      redis.disconnect()
      throw new Error(`redis-server has ended: ${readFileSync(join(this.folder, 'log'), 'utf8')}`)
    })
    await Promise.race([redis.ping(), exited])
    exited.catch(() => {})
    this.#redis = redis
  }

  /** It hears all that comes, and answers nothing until it is resumed. */
  pause(): void {
    this.#process?.kill('SIGSTOP')
  }

  resume(): void {
    this.#process?.kill('SIGCONT')
  }

  /** As a power cut would. */
  async kill(): Promise<void> {
    this.#redis?.disconnect()
    const running = this.#process
    this.#process = undefined
    if (running === undefined || running.exitCode !== null) return
    const gone = once(running, 'exit')
    running.kill('SIGKILL')
    await gone
  }

  /** Writes a snapshot, which {@link restore} goes back to. */
  async snapshot(): Promise<void> {
    await this.redis.save()
    copyFileSync(join(this.folder, 'dump.rdb'), join(this.folder, 'backup.rdb'))
  }

  async restore(): Promise<void> {
    await this.kill()
    copyFileSync(join(this.folder, 'backup.rdb'), join(this.folder, 'dump.rdb'))
    await this.restart()
  }
}
