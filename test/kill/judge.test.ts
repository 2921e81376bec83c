import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parseHistory } from '../simulation/history.ts'
import { checkHistory } from '../simulation/history-checker.ts'
import type { Traced } from './evidence.ts'
import { judgeFile } from './judge.ts'

const place = { destination: 'bank', jobId: 'job-1', generation: 1, leaseId: 'a' } as const
const effect: Traced = { event: 'applied', ...place, operationId: 'write-1', nonce: 'n1' }

function invoke(call: string, operationId = 'write-1') {
  return { event: 'invoke', call, verb: 'write', ...place, operationId }
}

function answer(call: string, more: object = {}) {
  const good = { outcome: 'applied', result: { nonce: 'n1' }, httpStatus: 200 }
  return { event: 'answer', call, ...good, ...more }
}

/** A history as the processes of a run leave it. */
function file(...lines: (object | string)[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'writefence-judge-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'history.jsonl')
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)))
  writeFileSync(path, text.map((line) => `\n${line}\n`).join(''))
  return path
}

function rulesOf(lines: (object | string)[], effects: readonly Traced[]): string[] {
  return judgeFile(file(...lines), effects).violations.map(({ rule }) => rule)
}

describe('the history of a run', () => {
  it('is in order where each acknowledged write is there once, and says how much that was', () => {
    const unavailable = { outcome: 'unknown', code: 'store_unavailable', httpStatus: 503 }
    const lines = [invoke('c1'), answer('c1', unavailable), invoke('c2'), answer('c2')]
    expect(judgeFile(file(...lines), [effect])).toEqual({
      violations: [],
      calls: 2,
      acknowledged: 1,
      effects: 1,
      replayed: 0,
      refused: 0,
      unavailable: 1,
    })
  })

  it('is judged by all rules of the checker', () => {
    expect(rulesOf([invoke('c1'), answer('c1')], [])).toEqual(['acknowledged_lost'])
    expect(rulesOf([invoke('c1'), answer('c1')], [effect, effect])).toEqual(['applied_twice'])
  })

  it('is wrong where somebody was told of another run than the one that is there', () => {
    const other = answer('c1', { result: { nonce: 'n2' } })
    expect(rulesOf([invoke('c1'), other], [effect])).toEqual(['mistold'])
    const twice = [invoke('c1'), answer('c1'), invoke('c2'), { ...other, call: 'c2' }]
    expect(rulesOf(twice, [effect])).toEqual(['replay_differs', 'mistold'])
  })

  it('is wrong where anybody got an answer that nobody has thought of', () => {
    const failed = answer('c1', { outcome: 'unknown', result: undefined, httpStatus: 500 })
    expect(rulesOf([invoke('c1'), failed], [effect])).toEqual(['undocumented'])
  })

  it('keeps whole lines only: half of one is what a killed process leaves', () => {
    const half = JSON.stringify(answer('c2')).slice(0, 40)
    expect(rulesOf([invoke('c1'), half, answer('c1')], [effect])).toEqual([])
  })

  it('can be judged again from its file alone', () => {
    const path = file(invoke('c1'), '{"event":"ans', answer('c1'))
    judgeFile(path, [effect])
    const { violations, counts } = checkHistory(parseHistory(readFileSync(path, 'utf8')))
    expect(violations).toEqual([])
    expect(counts).toMatchObject({ operations: 1, effects: 1 })
  })
})
