/**
 * Holds back what a handler answers, however it does so, until it is known to be on record.
 *
 * The handler must not notice: to it the head is sent once it has sent it, and the answer ended
 * once it has ended it. A client that hangs up is not told to it either: it works on, and what it
 * answers is what the client gets when it asks again.
 */

import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { HeldAnswer, Hold } from '../http/exchange.ts'
import { Patience } from './patience.ts'
import {
  applyHead,
  type Callback,
  type HeadArguments,
  headersOf,
  headIsSent,
  pretend,
  readWrite,
  watchCuts,
} from './response.ts'

type Below = Pick<
  ServerResponse,
  'writeHead' | 'write' | 'end' | 'flushHeaders' | 'emit' | 'destroy'
>

// What may not be done to a head that is sent.
const HEAD_CHANGES = ['setHeader', 'setHeaders', 'appendHeader', 'removeHeader'] as const

/** See {@link Hold}. Installed on top of what other middleware has put on the response. */
export class ResponseHold implements Hold {
  readonly ended: Promise<HeldAnswer>
  readonly #res: ServerResponse
  readonly #limit: number
  readonly #below: Below
  readonly #headersBefore: ReturnType<ServerResponse['getHeaders']>
  #settle: { resolve(answer: HeldAnswer): void; reject(error: Error): void } | undefined
  /** `passing`: too long to be kept, so that all but the last piece goes out as it comes. */
  #phase: 'holding' | 'passing' | 'open' = 'holding'
  /** Whether the handler has sent its head, and with which status. */
  #headed = false
  #status = 200
  #message = ''
  /** Whether the code that runs right now was told that the head is sent. */
  #toldOfHead = false
  #done = false
  readonly #patience: Patience
  #clientGone: boolean
  #closeHeld = false
  #size = 0
  #chunks: Uint8Array[] = []
  #callback: Callback | undefined
  #source: Readable | undefined
  #restoreSocket: (() => void) | undefined
  /** Cuts the connection once the answer has gone out. */
  #cut: (() => void) | undefined

  constructor(res: ServerResponse, maxBodyBytes: number) {
    this.#res = res
    this.#limit = maxBodyBytes
    const { writeHead, write, end, flushHeaders, emit, destroy } = res
    this.#below = { writeHead, write, end, flushHeaders, emit, destroy }
    this.#headersBefore = res.getHeaders()
    this.#patience = new Patience(res, () => this.#cutOff())
    this.#clientGone = res.destroyed
    this.ended = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
    })
    // Whoever asks is told; a handler that dies before anybody has asked must not end the process.
    this.ended.catch(() => {})
    this.#install()
  }

  release(): void {
    if (this.#phase === 'open') return
    if (this.#phase === 'holding') this.#restoreStatus()
    this.#open()
    const body = this.#chunks.length === 0 ? undefined : Buffer.concat(this.#chunks)
    this.#below.end.call(this.#res, body, 'utf8', this.#callback)
    this.#cut?.()
  }

  waitNoMore(): void {
    this.#patience.limit()
  }

  drop(): void {
    const phase = this.#phase
    if (phase === 'open') return
    this.#open()
    if (phase === 'passing') {
      this.#below.destroy.call(this.#res)
      return
    }
    for (const name of this.#res.getHeaderNames()) this.#res.removeHeader(name)
    for (const [name, value] of Object.entries(this.#headersBefore)) {
      if (value !== undefined) this.#res.setHeader(name, value)
    }
    this.#res.statusCode = 200
    this.#res.statusMessage = ''
    this.#cut?.()
  }

  #install(): void {
    const res = this.#res
    const below = this.#below
    const holds = () => this.#phase !== 'open'
    res.writeHead = ((...args: HeadArguments) =>
      this.#phase === 'holding'
        ? this.#writeHead(args)
        : Reflect.apply(below.writeHead, res, args)) as ServerResponse['writeHead']
    res.write = ((...args: unknown[]) =>
      holds()
        ? this.#write(args)
        : Reflect.apply(below.write, res, args)) as ServerResponse['write']
    res.end = ((...args: unknown[]) =>
      holds() ? this.#end(args) : Reflect.apply(below.end, res, args)) as ServerResponse['end']
    res.flushHeaders = () => {
      if (this.#phase === 'holding') this.#ensureHead()
      else below.flushHeaders.call(res)
    }
    res.emit = (event: string | symbol, ...args: unknown[]) => {
      if (event === 'close' && holds()) return this.#hangUp()
      if (event === 'drain') this.#patience.renew()
      return Reflect.apply(below.emit, res, [event, ...args])
    }
    res.destroy = (error?: Error) => {
      if (holds()) this.#destroyed(error)
      return below.destroy.call(res, error)
    }
    for (const name of HEAD_CHANGES) {
      const change = res[name] as (...args: unknown[]) => unknown
      res[name] = ((...args: unknown[]) => {
        if (this.#phase === 'holding' && this.#headed) throw headIsSent()
        return change.apply(res, args)
      }) as never
    }
    pretend(res, 'headersSent', () => this.#tellOfHead())
    pretend(res, 'writableEnded', () => (holds() ? this.#done : undefined))
    res.on('pipe', (source: Readable) => {
      this.#source = source
      source.once('close', () => this.#cutShort(source))
    })
    this.#restoreSocket = watchCuts(res, (cut, error) => this.#onCut(cut, error))
  }

  #tellOfHead(): boolean | undefined {
    if (this.#phase === 'open' || !this.#headed) return undefined
    this.#toldOfHead = true
    process.nextTick(() => {
      this.#toldOfHead = false
    })
    return true
  }

  #writeHead(args: HeadArguments): ServerResponse {
    if (this.#headed) throw headIsSent()
    applyHead(this.#res, args)
    this.#headed = true
    this.#status = this.#res.statusCode
    this.#message = this.#res.statusMessage ?? ''
    return this.#res
  }

  /** As they were when the handler sent its head: later changes come too late. */
  #restoreStatus(): void {
    this.#res.statusCode = this.#status
    this.#res.statusMessage = this.#message
  }

  /** Asks the top layer, so that those above (compression) hear of it as they would. */
  #ensureHead(): void {
    if (!this.#headed) this.#res.writeHead(this.#res.statusCode)
  }

  #write(args: readonly unknown[]): boolean {
    const { chunk, callback } = readWrite(args)
    if (chunk === undefined) throw new TypeError('there is no chunk to write')
    if (this.#done) {
      if (callback !== undefined) process.nextTick(callback, new Error('write after end'))
      return false
    }
    this.#ensureHead()
    // The writer may use its buffer again once it was called back, and we are not through with it.
    this.#keep(Buffer.from(chunk))
    if (callback !== undefined) process.nextTick(callback)
    return this.#size <= this.#limit || this.#pass()
  }

  #end(args: readonly unknown[]): ServerResponse {
    const { chunk, callback } = readWrite(args)
    if (this.#done) {
      if (callback !== undefined) process.nextTick(callback, new Error('already ended'))
      return this.#res
    }
    this.#ensureHead()
    if (chunk !== undefined) this.#keep(chunk)
    this.#callback = callback
    this.#finish(this.#size <= this.#limit)
    return this.#res
  }

  #keep(chunk: Uint8Array): void {
    if (chunk.byteLength === 0) return
    this.#size += chunk.byteLength
    this.#chunks.push(chunk)
  }

  /** The last piece stays here: it could complete the answer, which is not on record yet. */
  #pass(): boolean {
    if (this.#clientGone) this.#chunks = []
    if (this.#chunks.length < 2) return true
    if (this.#phase === 'holding') {
      this.#phase = 'passing'
      this.#restoreStatus()
      this.#below.writeHead.call(this.#res, this.#status)
    }
    const pieces = this.#chunks.splice(0, this.#chunks.length - 1)
    const taken = pieces.map((piece) => this.#below.write.call(this.#res, piece, 'utf8'))
    return taken.every(Boolean) || this.#clientGone
  }

  #cutOff(): void {
    if (this.#done) return
    this.#below.destroy.call(this.#res)
    this.#loseClient()
  }

  #finish(kept: boolean): void {
    this.#done = true
    const body = kept ? Buffer.concat(this.#chunks) : undefined
    this.#settle?.resolve({ status: this.#status, headers: headersOf(this.#res), body })
  }

  /**
   * Express cuts the connection where an error comes after the head. So who is told that the head
   * is sent, and cuts right then, ends the handler in the middle of its answer. Others that cut
   * (the peer, a time-out, a server that closes) have not asked, and leave the handler at work. An
   * error is the network's, whoever asked just before.
   */
  #onCut(cut: () => void, error: Error | undefined): void {
    if (this.#done && this.#phase !== 'open') {
      // By now the answer (one that is sent twice, say) would be with the client: it has yet to go.
      this.#cut = () => {
        if (this.#clientGone) cut()
        else this.#res.once('finish', cut)
      }
      return
    }
    if (this.#toldOfHead && error === undefined) this.#destroyed(undefined)
    cut()
  }

  #hangUp(): boolean {
    this.#closeHeld = true
    this.#loseClient()
    return true
  }

  /** The client is gone. Whoever waits for it to read on is told to go on. */
  #loseClient(): void {
    if (this.#clientGone) return
    this.#clientGone = true
    if (this.#done) return
    this.#below.emit.call(this.#res, 'drain')
    // A pipe through compression below waits for that to drain, and it never will.
    this.#source?.resume()
  }

  /**
   * `send` and its like watch the socket themselves and give up their file once the client is gone:
   * the answer will not be ended any more. What it was is known but for its body.
   */
  #cutShort(source: Readable): void {
    if (!this.#clientGone || this.#done || this.#phase === 'open' || source.errored) return
    this.#ensureHead()
    this.#finish(false)
  }

  #destroyed(cause: Error | undefined): void {
    this.#settle?.reject(new Error('the handler destroyed its response', { cause }))
    this.#open()
  }

  #open(): void {
    this.#phase = 'open'
    this.#patience.end()
    this.#restoreSocket?.()
    if (this.#closeHeld) process.nextTick(() => this.#below.emit.call(this.#res, 'close'))
    this.#closeHeld = false
  }
}
