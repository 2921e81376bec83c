/** A TCP proxy that can fall silent, or die, at a chosen moment of a conversation. */

import { createServer, connect as dial, type Server, type Socket } from 'node:net'

/** What becomes of the conversation in which a client says something. */
export type Fate =
  /** It never reaches the server, and nothing does any more. */
  | 'hang'
  /** It reaches the server, whose answers do not come back. */
  | 'lose_answers'
  /** The connection is cut before it reaches the server. */
  | 'cut'
  /** It reaches the server; the connection is cut in place of its answer. */
  | 'cut_answer'

interface Conversation {
  readonly client: Socket
  readonly server: Socket
  fate: Fate | undefined
  /** What was held back, in order. */
  held: (() => void)[]
}

export class TcpProxy {
  readonly #server: Server
  readonly #conversations = new Set<Conversation>()
  #trigger: { text: string; fate: Fate } | undefined
  #onFate: () => void = () => {}
  /** How many connections were ever made. */
  accepted = 0

  private constructor(server: Server) {
    this.#server = server
  }

  static async to(host: string, port: number): Promise<TcpProxy> {
    const server = createServer()
    const proxy = new TcpProxy(server)
    server.on('connection', (client) => proxy.#join(client, dial(port, host)))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  get port(): number {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('the proxy is not open')
    return address.port
  }

  /** The connections that are open on the side of the client. */
  get open(): number {
    return this.#conversations.size
  }

  /** From now on, whoever says `text` meets this fate. Resolves when somebody did. */
  when(text: string, fate: Fate): Promise<void> {
    this.#trigger = { text, fate }
    return new Promise((resolve) => {
      this.#onFate = resolve
    })
  }

  /** No further fates; what was held back is delivered to whoever is still there. */
  resume(): void {
    this.#trigger = undefined
    for (const conversation of this.#conversations) {
      conversation.fate = undefined
      for (const deliver of conversation.held.splice(0)) deliver()
    }
  }

  /** Cuts every connection at once, in the middle of nothing. */
  dropAll(): void {
    for (const { client, server } of this.#conversations) {
      client.destroy()
      server.destroy()
    }
  }

  async close(): Promise<void> {
    this.dropAll()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #join(client: Socket, server: Socket): void {
    const conversation: Conversation = { client, server, fate: undefined, held: [] }
    this.#conversations.add(conversation)
    this.accepted += 1
    client.on('error', () => {})
    server.on('error', () => {})
    client.on('data', (data) => this.#fromClient(conversation, data))
    server.on('data', (data) => this.#fromServer(conversation, data))
    client.on('close', () => {
      this.#conversations.delete(conversation)
      // What was held back is delivered, as a slow network would: the server then sees the end.
      for (const deliver of conversation.held.splice(0)) deliver()
      server.end()
    })
    server.on('close', () => client.destroy())
  }

  #fromClient(conversation: Conversation, data: Buffer): void {
    const { client, server } = conversation
    if (this.#trigger !== undefined && data.includes(this.#trigger.text)) {
      conversation.fate = this.#trigger.fate
      this.#onFate()
    }
    if (conversation.fate === 'cut') client.destroy()
    else if (conversation.fate === 'hang') conversation.held.push(() => server.write(data))
    else server.write(data)
  }

  #fromServer(conversation: Conversation, data: Buffer): void {
    const { client, fate } = conversation
    if (fate === 'cut_answer') client.destroy()
    else if (fate === undefined) client.write(data)
    else conversation.held.push(() => client.writable && client.write(data))
  }
}
