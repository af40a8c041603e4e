import { existsSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { ROOT } from '../helpers/program.ts'
import { HOOKS_FAULTS } from './hooks.ts'
import { KERNEL_FAULTS } from './kernel.ts'
import { LINKS_FAULTS } from './links.ts'
import { OPS_FAULTS } from './ops.ts'

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

export const FAULTS: readonly PlantedFault[] = [
  ...KERNEL_FAULTS,
  ...HOOKS_FAULTS,
  ...LINKS_FAULTS,
  ...OPS_FAULTS,
]

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
