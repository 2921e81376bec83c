/**
 * The seam for frameworks: one request and its answer, as the guard needs to see them. An adapter
 * (express/ is one) makes an `Exchange` of what its framework hands it; all the rest is here.
 */

import type { RequestBody } from '../wire/fingerprint.ts'

export type HeaderFields = Readonly<Record<string, string | readonly string[]>>

/** An answer, complete. The adapter adds its `Content-Length`. */
export interface Answer {
  readonly status: number
  readonly headers: HeaderFields
  readonly body: Uint8Array | string
}

/** What is done to an answer just before its head goes out. */
export interface HeadChange {
  /** Set whatever the handler has set; `undefined` takes the header away. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Sent in place of the answer: its head, its body and whatever the handler writes later. */
  readonly instead?: Answer | undefined
}

/** What a handler answered, complete and not yet sent. Header names are in lower case. */
export interface HeldAnswer {
  readonly status: number
  readonly headers: HeaderFields
  /** `undefined` where it was longer than the limit and has been sent, but for its last piece. */
  readonly body: Uint8Array | undefined
}

export interface Hold {
  /**
   * Settles once the handler has ended its answer, whether or not the client is still there.
   * Rejects where it destroyed the response, or failed in the middle of it: what it did before is
   * not known.
   */
  readonly ended: Promise<HeldAnswer>
  /**
   * From here on the handler waits for no client that does not read what has been sent: its
   * connection is cut, as if it had hung up.
   */
  waitNoMore(): void
  /** Lets the answer out. */
  release(): void
  /** Drops the answer, so that another can be sent; cuts the connection where it is half sent. */
  drop(): void
}

export interface Exchange<Req = unknown> {
  /** The framework's own request: what the user's hooks are called with. */
  readonly request: Req
  readonly method: string
  /** Path and query as the client sent them, whatever the handler is mounted under. */
  readonly target: string
  /** Name, value, name, value: as received, repeated lines apart. */
  readonly rawHeaders: readonly string[]
  readonly contentType: string | undefined
  /** The body as far as it has been read. Reads nothing itself. */
  body(): RequestBody
  /** Calls `hook` once, just before the head of the answer is sent, with its status. */
  beforeHead(hook: (status: number) => HeadChange): void
  /** Whether the head of an answer has gone out, whoever sent it. */
  isAnswered(): boolean
  /** Holds back what is answered from here on, up to `maxBodyBytes`, until it is released. */
  hold(maxBodyBytes: number): Hold
  /** Sends an answer of the guard's own, unless somebody else has answered. */
  answer(answer: Answer): void
  /** Lets the handler run. */
  proceed(): void
  /** Hands an error to the framework's error handling. */
  fail(error: unknown): void
}
