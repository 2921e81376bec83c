/** What docs/mutation-survivors.md explains: mutants that no test notices, and why. */

export interface Survivor {
  readonly file: string
  readonly line: number
  readonly original: string
  readonly replacement: string
}

export interface Explained {
  readonly file: string
  readonly original: string
  readonly reason: string
}

const LONGEST = 100

/** The same for the same change of the same text, wherever in the file it stands. */
export function keyOf({ file, original, replacement }: Omit<Survivor, 'line'>): string {
  return `${file}: ${short(original)} => ${short(replacement)}`
}

/**
 * By key. Under the heading of a file stand blocks of `- what it was` and `+ what it became`, each
 * followed by the reason.
 */
export function explainedIn(text: string): Map<string, Explained> {
  const found = new Map<string, Explained>()
  const block = /^```diff\n(.*?)^```\n\n(.*?)(?=^```diff|^#|$(?!.))/gms
  for (const part of text.split(/^## /m).slice(1)) {
    const file = part.slice(0, part.indexOf('\n'))
    for (const [, lines = '', reason = ''] of part.matchAll(block)) {
      for (const [, original = '', replacement = ''] of lines.matchAll(/^- (.*)\n\+ ?(.*)$/gm)) {
        const key = keyOf({ file, original, replacement })
        found.set(key, { file, original, reason: reason.trim() })
      }
    }
  }
  return found
}

/** One line, and not too long to read. */
export function short(code: string): string {
  return code.replace(/\s+/g, ' ').trim().slice(0, LONGEST).trim()
}
