/** The guard in miniature, written from the rules of the design: it shares no code with it. */

export interface Call {
  readonly job: string
  readonly generation: number
  readonly lease: string
  readonly operation: string | undefined
  readonly fingerprint: string
}

interface Fence {
  generation: number
  /** `undefined`: unbound. */
  holder: string | undefined
  sealed: boolean
}

interface Record {
  readonly job: string
  readonly generation: number
  readonly fingerprint: string
  readonly state: 'begun' | 'unknown' | 'applied'
  /** Of what has begun or is unknown: whose attempt it is. */
  readonly attempt: number
  readonly deadline: number
  readonly at: number
  readonly result: string | undefined
}

export class GuardModel {
  now = 0
  readonly fences = new Map<string, Fence>()
  readonly records = new Map<string, Record>()

  key(job: string, operation: string): string {
    return `${job} ${operation}`
  }

  find({ job, operation }: Pick<Call, 'job' | 'operation'>): Record | undefined {
    return operation === undefined ? undefined : this.records.get(this.key(job, operation))
  }

  isOverdue(record: Record): boolean {
    return record.state === 'begun' && this.now >= record.deadline
  }

  /** Stale, conflict or nothing; moves the fence where nothing speaks against the token. */
  admit({ job, generation, lease }: Pick<Call, 'job' | 'generation' | 'lease'>): string {
    const fence = this.fences.get(job)
    if (fence !== undefined) {
      if (generation < fence.generation) return 'stale'
      const taken = fence.holder !== undefined && fence.holder !== lease
      if (generation === fence.generation && taken) return 'conflict'
    }
    this.fences.set(job, { generation, holder: lease, sealed: fence?.sealed ?? false })
    return ''
  }

  /** What is said to a write or an effect, with the fence moved as it is. */
  judge(call: Call, options: { takes?: boolean; proceed?: boolean } = {}): string {
    const refused = this.admit(call)
    if (refused !== '') return refused
    const own = this.find(call)
    if (own !== undefined) {
      if (own.fingerprint !== call.fingerprint) return 'mismatch'
      if (own.state === 'applied') return 'replayed'
      if (own.state === 'begun' && !this.isOverdue(own)) return 'in_flight'
      if (options.takes !== true) return 'outcome_unknown'
    }
    if (this.fences.get(call.job)?.sealed) return 'sealed'
    const older = [...this.records.values()].filter(
      (each) => each !== own && each.job === call.job && each.generation < call.generation,
    )
    const begun = older.filter((each) => each.state === 'begun')
    if (begun.some((each) => this.isOverdue(each)) && options.proceed !== true) {
      return 'outcome_unknown'
    }
    return begun.some((each) => !this.isOverdue(each)) ? 'in_flight' : 'applied'
  }

  put(call: Call & { operation: string }, record: Partial<Record>): void {
    const { job, generation, fingerprint } = call
    const none = { attempt: 0, deadline: 0, at: this.now, result: undefined }
    const state = record.state ?? 'applied'
    this.records.set(this.key(job, call.operation), {
      ...none,
      ...record,
      job,
      generation,
      fingerprint,
      state,
    })
  }

  /** Ends the attempt if it is the current one; says whether it was. */
  settle(call: Call & { operation: string }, attempt: number, ending: Partial<Record> | 'gone') {
    const own = this.find(call)
    if (own === undefined || own.state === 'applied' || own.attempt !== attempt) return false
    if (ending === 'gone') this.records.delete(this.key(call.job, call.operation))
    else this.put(call, { attempt, ...ending })
    return true
  }

  resolve(job: string, operation: string, result: string | undefined): string {
    const own = this.find({ job, operation })
    if (own === undefined) return 'unknown_operation'
    if (own.state === 'applied') return 'already_applied'
    if (own.state === 'begun' && !this.isOverdue(own)) return 'in_flight'
    const key = this.key(job, operation)
    if (result === undefined) this.records.delete(key)
    else this.records.set(key, { ...own, state: 'applied', result, at: this.now })
    return 'resolved'
  }

  reopen(job: string): void {
    const fence = this.fences.get(job)
    if (fence === undefined || (!fence.sealed && fence.holder === undefined)) return
    this.fences.set(job, { generation: fence.generation + 1, holder: undefined, sealed: false })
  }

  /** The keys of the records that go. */
  prune(olderThanMs: number): string[] {
    const old = [...this.records].filter(
      ([, each]) => each.state === 'applied' && each.at <= this.now - olderThanMs,
    )
    for (const [key] of old) this.records.delete(key)
    return old.map(([key]) => key)
  }

  /** What `inspect` tells of the job. */
  state(job: string) {
    const fence = this.fences.get(job)
    if (fence === undefined) return undefined
    const mine = [...this.records.values()].filter((each) => each.job === job)
    const begun = mine.filter((each) => each.state === 'begun' && !this.isOverdue(each))
    const overdue = mine.filter((each) => this.isOverdue(each))
    const older = (records: Record[]) =>
      records.filter((each) => each.generation < fence.generation).length
    return {
      scope: '',
      jobId: job,
      highestGeneration: fence.generation,
      holder: fence.holder === undefined ? 'unbound' : 'lease',
      sealed: fence.sealed,
      inFlight: begun.length,
      overdue: overdue.length,
      unknown: mine.filter((each) => each.state === 'unknown').length,
      older: { inFlight: older(begun), overdue: older(overdue) },
    }
  }
}
