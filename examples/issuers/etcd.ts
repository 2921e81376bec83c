/**
 * Elections of etcd, by its JSON gateway: https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/
 * Any client of etcd has the same calls; 64-bit numbers come as strings here.
 */

import type { FencingToken } from 'writefence'

/** What a campaign that was won answers (`LeaderKey`). `rev` is the key's create revision. */
export interface LeaderKey {
  readonly name: string
  readonly key: string
  readonly rev: string
  readonly lease: string
}

/** The key that an election is held by, as anybody can read it. */
export interface KeyValue {
  readonly create_revision: string
  readonly mod_revision: string
  readonly version: string
  readonly lease: string
}

/** The token of a leader. `leaseId`: a random one, made by the leader for this lease of etcd's. */
export function tokenOfEtcd(
  jobId: string,
  leader: Pick<LeaderKey, 'rev'>,
  leaseId: string,
): FencingToken {
  return { jobId, generation: Number(leader.rev), leaseId }
}

export class Etcd {
  readonly url: string

  constructor(url = process.env.ETCD_URL ?? 'http://127.0.0.1:2379') {
    this.url = url
  }

  /** A lease, by its id. It ends `ttlSeconds` after it was last kept alive. */
  async grant(ttlSeconds: number, id = '0'): Promise<string> {
    const { ID } = await this.#ask<{ ID: string }>('lease/grant', { TTL: ttlSeconds, ID: id })
    return ID
  }

  async keepAlive(lease: string): Promise<void> {
    await this.#ask('lease/keepalive', { ID: lease })
  }

  /** Ends the lease, and deletes its keys, as happens when it expires. */
  async revoke(lease: string): Promise<void> {
    await this.#ask('lease/revoke', { ID: lease })
  }

  /** Resolves once this lease leads. */
  async campaign(name: string, lease: string): Promise<LeaderKey> {
    const body = { name: base64(name), lease, value: base64(lease) }
    return (await this.#ask<{ leader: LeaderKey }>('election/campaign', body)).leader
  }

  /** Puts a value to the leader's key, as a leader does that has something to announce. */
  async proclaim(leader: LeaderKey, value: string): Promise<void> {
    await this.#ask('election/proclaim', { leader, value: base64(value) })
  }

  /** The key of whoever leads now. */
  async leader(name: string): Promise<KeyValue> {
    return (await this.#ask<{ kv: KeyValue }>('election/leader', { name: base64(name) })).kv
  }

  async #ask<T = unknown>(path: string, body: object): Promise<T> {
    const init = { method: 'POST', body: JSON.stringify(body) }
    const response = await fetch(`${this.url}/v3/${path}`, init)
    const answer = await response.text()
    if (!response.ok) throw new Error(`etcd answered ${response.status} to ${path}: ${answer}`)
    return JSON.parse(answer) as T
  }
}

const base64 = (text: string) => Buffer.from(text).toString('base64')
