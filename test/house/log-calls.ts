import { join } from 'node:path'
import type { CallExpression, Expression, Node } from 'typescript/unstable/ast'
import {
  isCallExpression,
  isElementAccessExpression,
  isIdentifier,
  isPropertyAccessExpression,
} from 'typescript/unstable/ast/is'
import { API, SymbolFlags, type Checker, type Type } from 'typescript/unstable/sync'

/** A line of the log, by the types of the call that writes it. */
interface Line {
  level: string
  message: string
  /** Names of its fields; one that only some lines have ends with `?`. */
  fields: readonly string[]
}

const LEVELS = ['info', 'warn', 'error']
/** Stands for a message that nobody could look up. */
const NO_LITERAL = '(no literal)'
/** Writes the messages of its callers: they are read there. */
const REPORTS = { name: 'reportsTo', path: 'kernel/repeat.ts' }

/** The lines of the log that files of the project write; `from` is the service whose file that is, else `program`. */
export function logCalls(root: string, paths: readonly string[]) {
  const api = new API({ cwd: root })
  try {
    const snapshot = api.updateSnapshot({ openProject: join(root, 'tsconfig.json') })
    const project = snapshot.getProjects()[0]
    return paths.flatMap((path) => {
      const file = project?.program.getSourceFile(join(root, path))
      if (project === undefined || file === undefined) throw new Error(`there is no ${path}`)
      const from = /\/(hooks|links|ops)(\.ts$|\/)/.exec(path)?.[1] ?? 'program'
      return callsIn(file).flatMap((call) => {
        const place = `${path}:${file.text.slice(0, call.end).split('\n').length}`
        return linesOf(project.checker, call)
          .filter(({ message }) => message !== NO_LITERAL || path !== REPORTS.path)
          .map((line) => ({ place, from, ...line }))
      })
    })
  } finally {
    api.close()
  }
}

function callsIn(node: Node) {
  const found: CallExpression[] = isCallExpression(node) ? [node] : []
  node.forEachChild((child) => void found.push(...callsIn(child)))
  return found
}

/** The lines that a call writes: two for `reportsTo`, none where it does not log. */
function linesOf(checker: Checker, call: CallExpression): readonly Line[] {
  const { expression: callee, arguments: given } = call
  if (isIdentifier(callee) && callee.text === REPORTS.name) {
    const fields = fieldsOf(checker, given[3])
    return [
      ...linesWith(['warn'], textsOf(checker, given[1]), [...fields, 'error']),
      ...linesWith(['info'], textsOf(checker, given[2]), fields),
    ]
  }
  const levels = levelsOf(checker, callee)
  if (levels.length === 0) return []
  return linesWith(levels, textsOf(checker, given[0]), fieldsOf(checker, given[1]))
}

function linesWith(
  levels: readonly string[],
  messages: readonly string[],
  fields: readonly string[],
) {
  return levels.flatMap((level) => messages.map((message) => ({ level, message, fields })))
}

/** `log.warn` has one level, `log[isDown ? 'warn' : 'error']` two. */
function levelsOf(checker: Checker, callee: Expression) {
  const isDotted = isPropertyAccessExpression(callee)
  if (!isDotted && !isElementAccessExpression(callee)) return []
  // Asking for a type takes time: most calls are ruled out by their name.
  if (isDotted && !LEVELS.includes(callee.name.text)) return []
  if (checker.getTypeAtLocation(callee.expression)?.getSymbol()?.name !== 'Log') return []
  return isDotted ? [callee.name.text] : textsOf(checker, callee.argumentExpression)
}

/** The literals that an expression may be. */
function textsOf(checker: Checker, expression: Expression | undefined) {
  return partsOf(checker, expression).map((part) =>
    part.isStringLiteralType() ? part.value : NO_LITERAL,
  )
}

function fieldsOf(checker: Checker, expression: Expression | undefined) {
  const parts = partsOf(checker, expression).map((part) => requiredOf(checker, part))
  const names = new Set(parts.flatMap((part) => [...part.keys()]))
  return [...names].map((name) => (parts.every((part) => part.get(name)) ? name : `${name}?`))
}

/** The properties of an object, and whether it always has them: JSON leaves out `undefined`. */
function requiredOf(checker: Checker, type: Type) {
  const properties = checker.getPropertiesOfType(type).map((property) => {
    const value = checker.getTypeOfSymbol(property) ?? checker.getUndefinedType()
    const isOptional = (property.flags & SymbolFlags.Optional) !== 0
    const mayBeUndefined = checker.isTypeAssignableTo(checker.getUndefinedType(), value)
    return [property.name, !isOptional && !mayBeUndefined] as const
  })
  return new Map(properties)
}

/** The types of which an expression has one. */
function partsOf(checker: Checker, expression: Expression | undefined) {
  const type = expression === undefined ? undefined : checker.getTypeAtLocation(expression)
  if (type === undefined) return []
  return type.isUnionType() ? type.getTypes() : [type]
}
