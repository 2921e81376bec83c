/** What a file may look like. Each rule takes a file and says what is wrong with it. */

import ts from 'typescript'
import { nodesOf, place, type Source } from './project.ts'

const MAX_FILE_LINES = 300
const MAX_FUNCTION_LINES = 69
const MAX_COLUMNS = 100

export type ShapeRule = (source: Source) => string[]

export const tooLong: ShapeRule = (source) => {
  const lines = source.text.trimEnd().split('\n').length
  return lines > MAX_FILE_LINES ? [`${source.path} has ${lines} lines`] : []
}

export const tooWide: ShapeRule = (source) =>
  source.text
    .split('\n')
    .flatMap((line, index) =>
      [...line].length > MAX_COLUMNS ? [`${source.path}:${index + 1} is wider`] : [],
    )

/** A `describe` is a chapter, not a function: the laws in it are measured, it is not. */
export const longFunction: ShapeRule = (source) => {
  const { tree, nodes } = nodesOf(source)
  return nodes.flatMap((node) => {
    if (!ts.isFunctionLike(node) || isChapter(node)) return []
    const lines = node.getText(tree).split('\n').length
    return lines > MAX_FUNCTION_LINES ? [`${place(source, tree, node)} has ${lines} lines`] : []
  })
}

export const defaultExport: ShapeRule = (source) => {
  const { tree, nodes } = nodesOf(source)
  return nodes.filter(isDefault).map((node) => place(source, tree, node))
}

export const oddName: ShapeRule = (source) => {
  const name = /^([a-z0-9]+(-[a-z0-9]+)*\/)*[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9-]+)*\.ts$/
  return name.test(source.path) ? [] : [source.path]
}

/** Names that read a clock. Giving up by a timer is allowed, asking for the time is not. */
const CLOCKS = ['Date', 'performance', 'hrtime', 'uptime', 'timeOrigin', 'Temporal', 'timeStamp']

export const readsClock: ShapeRule = (source) => named(source, CLOCKS)
export const usesConsole: ShapeRule = (source) => named(source, ['console'])

/** `any`, a compiler check switched off, or a cast by way of it. */
export const untyped: ShapeRule = (source) => {
  const { tree, nodes } = nodesOf(source)
  const anys = nodes.filter((node) => node.kind === ts.SyntaxKind.AnyKeyword)
  const off = /@ts-(ignore|nocheck)/.test(source.text) ? [`${source.path} has a @ts- switch`] : []
  return [...anys.map((node) => `${place(source, tree, node)} any`), ...off]
}

/** A test that is left out, or that leaves out the others. */
export const leftOut: ShapeRule = (source) => {
  const { tree, nodes } = nodesOf(source)
  const words = ['skip', 'only', 'todo', 'skipIf', 'runIf', 'fails']
  return nodes.flatMap((node) => {
    const isMember = ts.isPropertyAccessExpression(node) && isRunner(node.expression)
    const isOption = ts.isPropertyAssignment(node) && inRunnerCall(node)
    if (!(isMember || isOption)) return []
    return words.includes(node.name.getText(tree)) ? [place(source, tree, node)] : []
  })
}

/** The scenario ids in the titles of a file's tests that are not `R01` to `R128`. */
export const unknownScenario: ShapeRule = (source) => {
  const { tree, nodes } = nodesOf(source)
  return nodes.flatMap((node) => {
    if (!ts.isStringLiteralLike(node) && !ts.isTemplateHead(node)) return []
    return [...node.text.matchAll(/\bR(\d+)\b/g)]
      .filter(([, digits = '']) => !/^(0[1-9]|[1-9]\d|1[01]\d|12[0-8])$/.test(digits))
      .map(([id]) => `${place(source, tree, node)} ${id}`)
  })
}

function named(source: Source, names: readonly string[]): string[] {
  const { tree, nodes } = nodesOf(source)
  return nodes.flatMap((node) =>
    (ts.isIdentifier(node) || ts.isStringLiteralLike(node)) && names.includes(node.text)
      ? [`${place(source, tree, node)} ${node.text}`]
      : [],
  )
}

const RUNNERS = /^(it|test|describe|suite|context)\b/

function isRunner(node: ts.Expression): boolean {
  return RUNNERS.test(node.getText())
}

function inRunnerCall(node: ts.PropertyAssignment): boolean {
  const call = node.parent.parent
  return ts.isCallExpression(call) && isRunner(call.expression)
}

function isChapter(node: ts.Node): boolean {
  return (
    ts.isCallExpression(node.parent) &&
    /^describe(Engine)?\b/.test(node.parent.expression.getText())
  )
}

function isDefault(node: ts.Node): boolean {
  if (ts.isExportAssignment(node)) return true
  if (ts.isExportSpecifier(node)) return node.name.text === 'default'
  if (!ts.canHaveModifiers(node)) return false
  return (ts.getModifiers(node) ?? []).some((one) => one.kind === ts.SyntaxKind.DefaultKeyword)
}
