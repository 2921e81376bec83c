import { describe, expect, it } from 'vitest'
import { MAX_GENERATION } from 'writefence'
import { read, sources } from '../house/project.ts'
import { blocks, outsideCode, section, table } from './markdown.ts'

const PAGE = 'docs/issuers.md'
const page = read(PAGE)
const rows = table(PAGE, '# Tokens of other issuers').map(([issuer = '', generation, ...rest]) => {
  const [, heading = ''] = /\(#(.+)\)/.exec(issuer) ?? []
  const [, example = ''] = /\(\.\.\/(examples\/[^)]+)\)/.exec(rest.at(-1) ?? '') ?? []
  return { issuer, generation, heading, example }
})

const headings = [...outsideCode(page).matchAll(/^## (.*)$/gm)].map(([, text = '']) => text)
const anchorOf = (text: string) =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9 ]/g, '')
    .replaceAll(' ', '-')

/** The mappings of the examples: the text of each function, by its name. */
const mappings = new Map(
  sources('examples/issuers/')
    .flatMap(({ text }) => [...text.matchAll(/^export function (tokenOf\w+)\(.*?^\}\n/gms)])
    .map(([text, name = '']) => [name, text]),
)

describe('the table of issuers', () => {
  it('names an example of each, which is there', () => {
    expect(rows.length).toBeGreaterThan(5)
    const numbered = sources('examples/').map(({ path }) => path)
    for (const { issuer, example } of rows) expect(numbered, issuer).toContain(example)
  })

  it('names every example that is about an issuer', () => {
    const about = sources('examples/').filter(
      ({ path, text }) => /^examples\/\d/.test(path) && text.includes("from './issuers/"),
    )
    const named = new Set(rows.map(({ example }) => example))
    expect(named).toEqual(new Set(about.map(({ path }) => path)))
  })

  it.each(rows)('the section of $issuer prints the mapping that its example calls', (row) => {
    const heading = headings.find((text) => anchorOf(text) === row.heading)
    const printed = blocks(section(PAGE, `## ${heading}`), 'ts')
    if (row.generation === 'none') return expect(printed).toEqual([])
    expect(printed).toHaveLength(1)
    const [name] = [...mappings].find(([, text]) => text === printed[0]) ?? []
    expect(read(row.example)).toContain(`${name}(`)
  })
})

describe('the page of issuers', () => {
  it('prints every mapping of the examples as it is, and no other code', () => {
    expect(mappings.size).toBe(5)
    expect(blocks(page, 'ts').sort()).toEqual([...mappings.values()].sort())
  })

  it('says where a czxid ends', () => {
    const last = BigInt(MAX_GENERATION)
    const spaced = (number: bigint) => number.toLocaleString('en').replaceAll(',', ' ')
    const [epoch, counter] = [last >> 32n, BigInt.asUintN(32, last)]
    expect(page).toContain(`the counter ${spaced(counter)} in epoch ${spaced(epoch)}`)
    expect(Math.floor(Number(epoch) / 24 / 365.25)).toBe(26)
    expect(page).toContain(': 26 years of one\nelection an hour.')
    expect(page).toContain(`with it, epoch\n${last >> 40n} would be the last`)
    expect(read('examples/09-zookeeper-lock.ts')).toContain(`${spaced(counter)} in epoch`)
  })

  it('says where a revision ends', () => {
    expect(page).toContain('at a million changes a second it reaches 10^15 after 31 years')
    expect(Math.floor(MAX_GENERATION / 1e6 / 86_400 / 365.25)).toBe(31)
  })

  it('has a source for each that it refers to, and refers to each that it has', () => {
    const prose = outsideCode(page)
    const defined = [...prose.matchAll(/^\[([^\]]+)\]: https:\/\/\S+$/gm)].map(([, name]) => name)
    const used = [...prose.matchAll(/\[([\w.-]+)\](?![(:])/g)].map(([, name]) => name)
    expect(defined.length).toBeGreaterThan(10)
    expect(new Set(used)).toEqual(new Set(defined))
  })
})
