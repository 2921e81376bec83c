import { existsSync } from 'node:fs'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { entryPoints, root } from './project.ts'

const fixture = `${root}test/house/fixture.ts`
const fixtureText = `
  class Bare { told() {} }
  /** Explained. */
  class Known {
    /** Explained. */ told() {}
    untold() {}
    private hidden() {}
    #own() {}
  }
  export { Bare, Known }`

const program = compiled([...entryPoints().map((entry) => `${root}${entry.path}`), fixture])
const checker = program.getTypeChecker()

/** One program over the entry points and the fixture, which exists in memory only. */
function compiled(paths: readonly string[]): ts.Program {
  const { config } = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root)
  const host = ts.createCompilerHost(options)
  const onDisk = host.getSourceFile
  host.getSourceFile = (name, ...rest) =>
    name === fixture
      ? ts.createSourceFile(name, fixtureText, ts.ScriptTarget.ESNext, true)
      : onDisk(name, ...rest)
  return ts.createProgram(
    paths.filter((path) => path === fixture || existsSync(path)),
    options,
    host,
  )
}

/** The exported names, and the public methods of exported classes, that no docstring explains. */
function undocumented(path: string): string[] {
  const file = program.getSourceFile(path)
  const module = file && checker.getSymbolAtLocation(file)
  if (module === undefined) return [`${path} exports nothing`]
  return checker.getExportsOfModule(module).flatMap((exported) => {
    const isAlias = (exported.flags & ts.SymbolFlags.Alias) !== 0
    const symbol = isAlias ? checker.getAliasedSymbol(exported) : exported
    const isClass = (symbol.flags & ts.SymbolFlags.Class) !== 0
    const methods = isClass ? [...(symbol.members?.values() ?? [])].filter(isPublicMethod) : []
    return [symbol, ...methods]
      .filter((one) => one.getDocumentationComment(checker).length === 0)
      .map((one) => (one === symbol ? exported.name : `${exported.name}.${one.name}`))
  })
}

function isPublicMethod(member: ts.Symbol): boolean {
  const declared = member.valueDeclaration
  if (declared === undefined || !ts.isMethodDeclaration(declared)) return false
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected
  const isHidden = (ts.getCombinedModifierFlags(declared) & hidden) !== 0
  return !isHidden && !ts.isPrivateIdentifier(declared.name)
}

describe('every public name is explained by a docstring', () => {
  it.each(entryPoints())('$name', ({ path }) => {
    expect(undocumented(`${root}${path}`)).toEqual([])
  })

  it('a name or a method without one would be caught', () => {
    expect(undocumented(fixture)).toEqual(['Bare', 'Bare.told', 'Known.untold'])
  })
})
