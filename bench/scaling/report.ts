/** Tables in Markdown, as docs/scaling.md has them. */

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')
}

/** Three digits that mean something: 0.42, 8.15, 1250. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '-'
  if (value >= 100) return String(Number(value.toPrecision(3)))
  return value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

/** 1000 as 10^3; what is no power of ten as it is. */
export function power(value: number): string {
  const exponent = Math.log10(value)
  return Number.isInteger(exponent) && exponent > 2 ? `10^${exponent}` : String(value)
}

/** The figures of one cell: of 1, 16, 64 in flight, as its head says. */
export const each = <T>(all: readonly T[], of: (one: T) => string) => all.map(of).join(' · ')

export const megabytes = (bytes: number) => `${figure(bytes / 1e6)} MB`
