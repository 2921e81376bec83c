/** What can happen next in a world, and how often it may still go wrong. */

/** Ways for things to go wrong, each of which a world allows so many times. */
export type Fault =
  /** A request is lost; it is delivered and its answer lost; it is delivered twice, or late. */
  | 'lose'
  | 'mute'
  | 'again'
  | 'late'
  /** An effect elsewhere took place and did not return, or threw; it did not, and threw. */
  | 'land-silent'
  | 'land-broken'
  | 'break'
  | 'refuse'
  /** The store of a destination fails before its transaction, or after it. */
  | 'fail-before'
  | 'fail-after'
  | 'crash-worker'
  | 'crash-destination'
  | 'outage'
  | 'restore'

export interface Option {
  /** The same in every world that got here the same way. */
  readonly key: string
  readonly fault?: Fault | undefined
  /** It need not happen: a world without it has come to rest. */
  readonly optional?: true | undefined
  run(): void
}

export interface Faults {
  /** How many of each kind, and of all together. */
  readonly of: Partial<Readonly<Record<Fault, number>>>
  readonly atMost: number
}

export class Agenda {
  readonly #items = new Map<string, () => readonly Option[]>()
  /** Their ids in order, until one comes or goes. */
  #sorted: readonly string[] | undefined
  readonly #left: Partial<Record<Fault, number>>
  #leftInAll: number

  constructor({ of, atMost }: Faults) {
    this.#left = { ...of }
    this.#leftInAll = atMost
  }

  add(id: string, options: () => readonly Option[]): void {
    this.#items.set(id, options)
    this.#sorted = undefined
  }

  remove(id: string): void {
    this.#items.delete(id)
    this.#sorted = undefined
  }

  has(id: string): boolean {
    return this.#items.has(id)
  }

  removeAll(of: (id: string) => boolean): void {
    for (const id of this.#ids()) if (of(id)) this.remove(id)
  }

  /** In an order that depends on the state alone. */
  options(): Option[] {
    const options: Option[] = []
    for (const id of this.#ids()) {
      for (const option of this.#items.get(id)?.() ?? []) {
        if (option.fault === undefined || this.mayFail(option.fault)) options.push(option)
      }
    }
    return options
  }

  spend(fault: Fault | undefined): void {
    if (fault === undefined) return
    this.#left[fault] = (this.#left[fault] ?? 0) - 1
    this.#leftInAll -= 1
  }

  /** From here on everything goes well. */
  heal(): void {
    this.#leftInAll = 0
  }

  digest(): string {
    return JSON.stringify([this.#ids(), this.#left, this.#leftInAll])
  }

  mayFail(fault: Fault): boolean {
    return this.#leftInAll > 0 && (this.#left[fault] ?? 0) > 0
  }

  #ids(): readonly string[] {
    this.#sorted ??= [...this.#items.keys()].sort()
    return this.#sorted
  }
}
