import { describe, expect, it } from 'vitest'
import { generator } from './inputs.ts'
import { fuzzParsers } from './parsers.ts'
import { fuzzServer } from './server.ts'

describe('whatever comes from outside', () => {
  it('R61: is a checked value or the documented refusal to every reader', () => {
    expect(fuzzParsers(generator(1), 20_000)).toEqual([])
  })

  it('gets a documented answer from a server, which does nothing else', async () => {
    expect(await fuzzServer(generator(1), 300)).toEqual([])
  })
})
