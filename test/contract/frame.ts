import type { Test } from 'tap'
import { membersOf } from './sentences.ts'

/** Shows by the public face that the product keeps a sentence. */
export type Check<Face> = (t: Test, face: Face) => Promise<unknown>

/** Another test that shows it: its file and its title. The house test looks for it. */
type Elsewhere = `test/${string}.test.ts > ${string}`

/** Why a sentence asks for nothing that a client could see. */
type Unbound = { why: string }

/** Beginnings of sentences, by the beginning of their section, with what shows that they are kept. */
export type Contract<Face> = Record<string, Record<string, Check<Face> | Elsewhere | Unbound>>

/** Says why a sentence has no check. */
export function unbound(why: string) {
  return { why }
}

/** Runs the checks of a contract in turn; one that several sentences share runs once. */
export async function checkRows<Face>(t: Test, contract: Contract<Face>, face: Face) {
  const done = new Set<unknown>()
  for (const [section, rows] of Object.entries(contract)) {
    for (const [says, proof] of Object.entries(rows)) {
      if (typeof proof !== 'function' || done.has(proof)) continue
      done.add(proof)
      await t.test(`${section}: ${says}`, (inner) => proof(inner, face))
    }
  }
}

/** Members that the contracts do not have, each with the file of docs/ that decides it. */
export type Additions = Record<string, string>

/**
 * Checks the members of a value. It must have those that these sections of a contract declare, each of the
 * type that stands there, and no other but the additions. An addition may be absent.
 */
export function hasMembers(
  t: Test,
  value: unknown,
  page: string,
  sections: string | readonly string[],
  added: Additions = {},
) {
  const given = new Map(Object.entries(value ?? {}))
  for (const section of [sections].flat()) {
    for (const { name, type } of membersOf(page, section)) {
      t.ok(given.has(name), `${section} has ${name}`)
      t.ok(isOfType(given.get(name), type), `${name} is ${type}: ${given.get(name)}`)
      given.delete(name)
    }
  }
  const others = [...given.keys()].filter((name) => !Object.hasOwn(added, name))
  t.same(others, [], `${sections} has no other members`)
}

function isOfType(value: unknown, type: string) {
  if (value === null) return type.includes('null')
  if (/integer|int64/.test(type)) return Number.isSafeInteger(value)
  if (/number/.test(type)) return typeof value === 'number'
  if (/^boolean/.test(type)) return typeof value === 'boolean'
  if (/^array/.test(type)) return Array.isArray(value)
  if (/^object/.test(type)) return typeof value === 'object'
  return typeof value === 'string'
}
