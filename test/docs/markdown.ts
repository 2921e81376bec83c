/** What the tests of the prose read out of it. */

import { read } from '../house/project.ts'

/** The text under a heading, up to the next one of any level. */
export function section(path: string, heading: string): string {
  const text = `\n${read(path)}`
  const start = text.indexOf(`\n${heading}\n`)
  if (start < 0) throw new Error(`${path} has no heading "${heading}"`)
  const body = text.slice(start + heading.length + 2)
  const end = outsideCode(body).search(/^#+ /m)
  return end < 0 ? body : body.slice(0, end)
}

/** The rows of the first table under a heading, without its head, as the text of their cells. */
export function table(path: string, heading: string): string[][] {
  const lines = section(path, heading).split('\n')
  const first = lines.findIndex((line) => /^\|[-|]+\|$/.test(line))
  if (first < 0) throw new Error(`there is no table under "${heading}" in ${path}`)
  const rest = lines.slice(first + 1)
  const end = rest.findIndex((line) => !line.startsWith('|'))
  return rest.slice(0, end < 0 ? rest.length : end).map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  )
}

/** The code spans of a text, without their backticks. */
export function spans(text = ''): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)
}

/** The text with its code blocks blanked out, every character in its place. */
export function outsideCode(text: string): string {
  return text.replace(/^```.*?^```/gms, (block) => block.replace(/[^\n]/g, ' '))
}

/** The code blocks of a language, as they are printed. */
export function blocks(text: string, language: string): string[] {
  const fences = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms')
  return [...text.matchAll(fences)].map(([, code = '']) => code)
}
