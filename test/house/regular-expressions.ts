import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import type { Node, SourceFile } from 'typescript/unstable/ast'
import {
  isIdentifier,
  isNewExpression,
  isRegularExpressionLiteral,
} from 'typescript/unstable/ast/is'
import { API } from 'typescript/unstable/sync'

/** A regular expression of the product, and where it stands. */
export interface FoundExpression {
  path: string
  line: number
  source: string
  flags: string
}

/** A call of `new RegExp`. */
type Construction = Pick<FoundExpression, 'path' | 'line'>

/**
 * The literals in the files of a project, and the calls that build others, by the compiler's
 * syntax tree. `wanted` chooses files by their paths below `root`.
 */
export function expressionsIn(
  root: string,
  project: string,
  wanted: (path: string) => boolean,
): { literals: readonly FoundExpression[]; constructions: readonly Construction[] } {
  const literals: FoundExpression[] = []
  const constructions: Construction[] = []
  const api = new API({ cwd: root })
  try {
    const snapshot = api.updateSnapshot({ openProject: join(root, project) })
    const program = snapshot.getProjects()[0]?.program
    for (const name of program?.getSourceFileNames() ?? []) {
      const path = name.slice(root.length + 1)
      const file = name.startsWith(root) && wanted(path) ? program?.getSourceFile(name) : undefined
      if (file === undefined) continue
      visit(file, (node) => {
        if (isRegularExpressionLiteral(node)) {
          const [, source = '', flags = ''] = /^\/([^]*)\/([a-z]*)$/.exec(node.text) ?? []
          literals.push({ path, line: lineOf(file, node.end), source, flags })
        } else if (isNewExpression(node) && isIdentifier(node.expression)) {
          const { text, end } = node.expression
          if (text === 'RegExp') constructions.push({ path, line: lineOf(file, end) })
        }
      })
    }
  } finally {
    api.close()
  }
  return { literals, constructions }
}

function visit(node: Node, each: (node: Node) => void) {
  each(node)
  node.forEachChild((child) => visit(child, each))
}

function lineOf(file: SourceFile, at: number) {
  return file.text.slice(0, at).split('\n').length
}

/** The regular expressions that modules build from parts while they are loaded. */
export function builtBy(root: string, paths: readonly string[]) {
  const program = join(root, 'test', 'house', 'built-expressions.ts')
  const modules = paths.map((path) => join(root, path))
  const printed = execFileSync(process.execPath, [program, ...modules], { encoding: 'utf8' })
  const found = JSON.parse(printed) as readonly FoundExpression[]
  return found.flatMap(({ path, ...rest }) => {
    const isOurs = path.startsWith(root) && !path.includes('/node_modules/')
    return isOurs ? [{ path: path.slice(root.length + 1), ...rest }] : []
  })
}
