/** Destinations as they are found in the field, each with one fault, and what shows it. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ProbeProperty } from 'writefence/conformance'
import { type Answer, PlainDestination, read, type Write } from './plain-destination.ts'

interface Broken {
  readonly fault: string
  /** A property that the probe must find broken. */
  readonly shows: ProbeProperty
  readonly make: () => PlainDestination
}

class Unguarded extends PlainDestination {
  override async receive(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const write = this.parse(req, await read(req))
    const body = 'word' in write ? {} : this.effect(write)
    res.writeHead(201, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
  }
}

class CheckAtTheDoor extends PlainDestination {
  override async receive(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const door = this.parse(req, '')
    const refused = 'word' in door ? door : this.admit(door)
    const write = this.parse(req, await read(req))
    if (refused !== undefined || 'word' in write) this.send(res, refused ?? (write as Answer))
    else this.send(res, this.known(write) ?? (await this.apply(write)))
  }
}

/**
 * One whose writes take their time, and the last to come is served first, as it may be where each
 * has a connection of its own: once all that are under way wait, or a moment later.
 */
class SlowDatabase extends PlainDestination {
  #underWay = 0
  #waiting: (() => void)[] = []
  #timer: NodeJS.Timeout | undefined

  override async receive(req: IncomingMessage, res: ServerResponse): Promise<void> {
    this.#underWay += 1
    await super.receive(req, res)
    this.#underWay -= 1
    if (this.#waiting.length >= this.#underWay) this.#serve()
  }

  turn(): Promise<void> {
    return new Promise((resolve) => {
      const all = this.#waiting.unshift(resolve) >= this.#underWay
      // Not before the last one waits as well.
      if (all) queueMicrotask(() => this.#serve())
      else this.#timer ??= setTimeout(() => this.#serve(), 50)
    })
  }

  #serve(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

class CheckThenWrite extends SlowDatabase {
  override async apply(write: Write): Promise<Answer> {
    await this.turn()
    return this.known(write) ?? super.apply(write)
  }
}

class NotEqual extends PlainDestination {
  override admit(write: Write): Answer | undefined {
    const fence = this.fences.get(write.jobId)
    if (fence === undefined) this.advance(write)
    else if (write.generation !== fence.generation) return stale(fence.generation)
    return undefined
  }
}

/** The same slip the other way round: it only notices that the token is another one. */
class Differs extends PlainDestination {
  override admit(write: Write): Answer | undefined {
    if (write.generation !== this.fences.get(write.jobId)?.generation) this.advance(write)
    return undefined
  }
}

class BelowOrEqual extends PlainDestination {
  override admit(write: Write): Answer | undefined {
    const highest = this.fences.get(write.jobId)?.generation ?? 0
    if (write.generation <= highest) return stale(highest)
    this.advance(write)
    return undefined
  }
}

/** Whoever is told to wait takes the record with him, as an error handler that cleans up does. */
class DedupeWithoutOwner extends SlowDatabase {
  override async apply(write: Write): Promise<Answer> {
    const key = this.keyOf(write)
    this.records.set(key, { fingerprint: write.fingerprint, body: undefined })
    await this.turn()
    return super.apply(write)
  }

  override busy(write: Write): Answer {
    this.records.delete(this.keyOf(write))
    return super.busy(write)
  }
}

class DedupeAfterwards extends SlowDatabase {
  override async apply(write: Write): Promise<Answer> {
    await this.turn()
    return super.apply(write)
  }
}

class RecordKeyedWithoutJob extends PlainDestination {
  override keyOf({ operationId }: Write): string {
    return operationId
  }
}

class FenceOfAllJobs extends PlainDestination {
  override parse(req: IncomingMessage, body: string): Write | Answer {
    const write = super.parse(req, body)
    return 'word' in write ? write : { ...write, jobId: 'all' }
  }
}

class FenceInMemory extends PlainDestination {
  override async restart(): Promise<undefined> {
    this.fences = new Map()
  }
}

class RecordsInMemory extends PlainDestination {
  override async restart(): Promise<undefined> {
    this.records = new Map()
  }
}

class ComparedAsText extends PlainDestination {
  override admit(write: Write): Answer | undefined {
    const highest = this.fences.get(write.jobId)?.generation ?? 0
    if (`${write.generation}` < `${highest}`) return stale(highest)
    this.advance(write)
    return undefined
  }
}

class NoHolder extends PlainDestination {
  override admit(write: Write): Answer | undefined {
    const highest = this.fences.get(write.jobId)?.generation ?? 0
    if (write.generation < highest) return stale(highest)
    this.advance(write)
    return undefined
  }
}

class ReplaysBeforeTheFence extends PlainDestination {
  override decide(write: Write): Answer | Promise<Answer> {
    return this.known(write) ?? this.admit(write) ?? this.apply(write)
  }
}

class AdvancesOnlyWhenItWrites extends PlainDestination {
  override advance(): void {}

  override apply(write: Write): Answer | Promise<Answer> {
    super.advance(write)
    return super.apply(write)
  }
}

class NoFingerprint extends PlainDestination {
  override parse(req: IncomingMessage): Write | Answer {
    return super.parse(req, '')
  }
}

class LastTokenWins extends PlainDestination {
  override parse(req: IncomingMessage, body: string): Write | Answer {
    const { 'fencing-token': tokens = [] } = req.headersDistinct
    const [, generation, jobId, leaseId] =
      /^(.*?);job="([^"]+)";lease="([^"]+)"/.exec(tokens.at(-1) ?? '') ?? []
    req.headersDistinct['fencing-token'] = [
      `${Number.parseInt(generation ?? '', 10)};job="${jobId}";lease="${leaseId}"`,
    ]
    return super.parse(req, body)
  }
}

/** The body says what the verdict says: the second answer is another one than the first. */
class BodyOfItsOwn extends PlainDestination {
  override send(res: ServerResponse, answer: Answer): void {
    super.send(res, { ...answer, body: { ...answer.body, status: answer.word } })
  }
}

class NoVerdict extends PlainDestination {
  override send(res: ServerResponse, answer: Answer): void {
    res.setHeader = new Proxy(res.setHeader, {
      apply: (set, self, [name, value]: [string, string]) =>
        name === 'Fencing-Verdict' ? res : Reflect.apply(set, self, [name, value]),
    })
    super.send(res, answer)
  }
}

class StatusOfItsOwn extends PlainDestination {
  override send(res: ServerResponse, answer: Answer): void {
    super.send(res, answer.status === 412 ? { ...answer, status: 409 } : answer)
  }
}

function stale(highest: number): Answer {
  return { status: 412, word: 'stale', highest }
}

export const brokenDestinations: readonly Broken[] = [
  { fault: 'no guard at all', shows: 'refuses_stale', make: () => new Unguarded() },
  { fault: 'no guard at all', shows: 'replays_duplicates', make: () => new Unguarded() },
  {
    fault: 'checked at the door, written after the body has come',
    shows: 'checks_when_it_writes',
    make: () => new CheckAtTheDoor(),
  },
  {
    fault: 'checked, then written by a database that takes its time',
    shows: 'orders_concurrent_generations',
    make: () => new CheckThenWrite(),
  },
  { fault: 'refuses !=', shows: 'accepts_newer_generation', make: () => new NotEqual() },
  { fault: 'takes over by !=', shows: 'refuses_stale', make: () => new Differs() },
  { fault: 'refuses <=', shows: 'accepts_same_generation', make: () => new BelowOrEqual() },
  {
    fault: 'a record that anybody may end',
    shows: 'applies_concurrent_duplicates_once',
    make: () => new DedupeWithoutOwner(),
  },
  {
    fault: 'a record that is looked up before and written afterwards',
    shows: 'applies_concurrent_duplicates_once',
    make: () => new DedupeAfterwards(),
  },
  {
    fault: 'a record keyed without its job',
    shows: 'keeps_jobs_apart',
    make: () => new RecordKeyedWithoutJob(),
  },
  { fault: 'one fence for all jobs', shows: 'keeps_jobs_apart', make: () => new FenceOfAllJobs() },
  { fault: 'a fence in memory', shows: 'remembers_after_restart', make: () => new FenceInMemory() },
  {
    fault: 'records in memory',
    shows: 'remembers_after_restart',
    make: () => new RecordsInMemory(),
  },
  {
    fault: 'generations compared as text',
    shows: 'compares_as_numbers',
    make: () => new ComparedAsText(),
  },
  { fault: 'no holder', shows: 'refuses_second_holder', make: () => new NoHolder() },
  {
    fault: 'duplicates are looked up before the fence',
    shows: 'refuses_stale_after_takeover',
    make: () => new ReplaysBeforeTheFence(),
  },
  {
    fault: 'a fence that moves only with an effect',
    shows: 'advances_when_refusing',
    make: () => new AdvancesOnlyWhenItWrites(),
  },
  { fault: 'no fingerprint', shows: 'refuses_mismatch', make: () => new NoFingerprint() },
  {
    fault: 'the last of two tokens wins, and is parsed leniently',
    shows: 'refuses_malformed',
    make: () => new LastTokenWins(),
  },
  {
    fault: 'a replay with a body of its own',
    shows: 'replays_duplicates',
    make: () => new BodyOfItsOwn(),
  },
  {
    fault: 'no verdict on its answers',
    shows: 'proves_that_it_fences',
    make: () => new NoVerdict(),
  },
  { fault: 'a status of its own', shows: 'spells_refusals', make: () => new StatusOfItsOwn() },
]
