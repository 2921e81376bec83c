import { expect, it } from 'vitest'
import { Load } from './load.ts'

it('a kill comes once so many requests have begun, however long that takes', async () => {
  const load = new Load()
  load.began()
  let come = false
  const moment = load.after(2, 2 ** 30).then(() => {
    come = true
  })
  load.began()
  load.ended()
  await Promise.resolve()
  expect(come).toBe(false)
  load.began()
  await moment
  expect(load.underWay).toBe(2)
})

it('a kill comes after a while where no request does', async () => {
  await new Load().after(1, 1)
})
