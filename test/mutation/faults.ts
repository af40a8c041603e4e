import { existsSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { ROOT } from '../helpers/program.ts'

/** A small fault in the program, and the test that fails with it. */
export type PlantedFault = {
  /** What the program does wrong then. */
  why: string
  path: string
  /** Stands in the file exactly once. */
  find: string
  replace: string
  test: string
}

/**
 * Each paragraph of the text files beside this one is a fault: a line for `why`, one for `path`, those to find
 * with `-` before them, those that replace them with `+`, and one for `test`.
 */
export const FAULTS = ['kernel', 'hooks', 'links', 'ops'].flatMap((name) => {
  const text = readFileSync(join(import.meta.dirname, `${name}.txt`), 'utf8')
  return text.trim().split('\n\n').map(faultOf)
})

function faultOf(paragraph: string) {
  const lines = paragraph.split('\n')
  const marked = (sign: string) =>
    lines.flatMap((line) => (line.startsWith(sign) ? [line.slice(1)] : [])).join('\n')
  const [why = '', path = ''] = lines
  return { why, path, find: marked('-'), replace: marked('+'), test: lines.at(-1) ?? '' }
}

/** Why a fault can't be tried on the present sources; undefined when it can. */
export function misfitOf({ path, find, replace, test }: PlantedFault) {
  if (!existsSync(join(ROOT, path))) return `there is no ${path}`
  if (!existsSync(join(ROOT, test))) return `there is no ${test}`
  const [before = '', ...after] = readFileSync(join(ROOT, path), 'utf8').split(find)
  if (after.length !== 1) return `${path} has ${after.length} times ${JSON.stringify(find)}`
  return path.endsWith('.ts') ? syntaxError(before + replace + after.join()) : undefined
}

/** A program that can't be read fails every test. */
function syntaxError(text: string) {
  try {
    stripTypeScriptTypes(text)
    return undefined
  } catch (error) {
    return String(error)
  }
}
