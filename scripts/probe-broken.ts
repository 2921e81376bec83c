/**
 * Shows that the destination probe finds what it is there to find: each broken destination of
 * test/probe, with what was seen of it, and one that is in order. `--short` leaves out the details.
 */

import { brokenDestinations } from '../test/probe/broken-destinations.ts'
import { PlainDestination } from '../test/probe/plain-destination.ts'
import { probed } from '../test/probe/probing.ts'

const short = process.argv.includes('--short')
let missed = 0

for (const { fault, shows, make } of brokenDestinations) {
  const findings = await probed(make(), true)
  const broken = findings.filter(({ holds }) => holds === false)
  const seen = broken.find(({ property }) => property === shows)
  if (seen === undefined) missed += 1
  console.log(`${seen === undefined ? 'MISSED' : 'found '} ${fault}: ${shows}`)
  if (!short)
    for (const { property, detail } of broken) console.log(`         ${property}: ${detail}`)
}

const sound = await probed(new PlainDestination(), true)
const wrong = sound.filter(({ holds }) => holds !== true)
for (const { property, detail } of wrong) console.log(`WRONG  in order, but ${property}: ${detail}`)

const total = brokenDestinations.length
const figures = `broken=${total} found=${total - missed} sound=1 wrong=${wrong.length}`
console.log(`probe:broken: ${figures} properties=${sound.length}`)
process.exitCode = missed === 0 && wrong.length === 0 ? 0 : 1
