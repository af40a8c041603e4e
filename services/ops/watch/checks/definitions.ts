import * as Type from '../../../../kernel/schema.ts'
import type { Executor } from '../../../../db/client.ts'
import {
  checkQueries as q,
  type Definition,
  type HeldDefinition,
  type SealedHeaders,
} from '../../../../db/ops/watch/checks.ts'
import { badRequest, Fault, found, notFound } from '../../../../kernel/fault.ts'
import { isObject } from '../../../../kernel/json.ts'
import type { SecretBox } from '../../../../kernel/secret-box.ts'
import { hashToken, type RandomBytes } from '../../../../kernel/tokens.ts'
import { field, parsed } from '../../../../kernel/validate.ts'
import { makeChange, noteChange, type ChangeNote, type ChangeTools } from '../../../audit.ts'
import type { Redaction } from '../../redact.ts'
import { CONFIGURED, sealHeaders } from './headers.ts'
import { mistakeByHand } from './rules.ts'
import type { Check } from './run.ts'
import { columnsOf, storedName } from './states.ts'

// Checks that people make by hand, beside those of the inventory file.

/** Bounds the memory of each instance, and the time of each round. */
export const MAX_BY_HAND = 1_000
/** Characters of a definition as JSON. */
const MAX_DEFINITION = 16_384
const TOKEN_BYTES = 24
const NAME = 'must be a text of 1 to 200 characters without control characters'

const EXAMPLE = { type: 'tcp', name: 'database', host: 'db.example', port: 5432, every: '10s' }
const Given = parsed(
  Type.Unsafe<Definition>({
    type: 'object',
    description: 'As the inventory file has it; values of headers are never shown again',
  }),
  'must be a JSON object with a type',
  (given) => (isObject(given) ? given : undefined),
)

/** A check that is added. */
export const NewCheck = Type.Object(
  {
    service: field(
      Type.String({ minLength: 1, maxLength: 200 }),
      { wrong: NAME, missing: `is required and ${NAME}` },
      [(name) => name.trim() !== '' && !/\p{C}/u.test(name), NAME],
    ),
    check: Given,
  },
  { additionalProperties: false, examples: [{ service: 'shop', check: EXAMPLE }] },
)
export type NewCheck = Type.Static<typeof NewCheck>

/** What a check is changed to; its service and name stay. */
export const CheckUpdate = Type.Object(
  { check: Given },
  { additionalProperties: false, examples: [{ check: EXAMPLE }] },
)

export interface DefinitionTools extends ChangeTools {
  box: () => SecretBox | undefined
  redact: Redaction
}

/** A check as it is stored. */
interface Written {
  name: string
  columns: ReturnType<typeof columnsOf> & { definition: Definition; headers: SealedHeaders }
}

/**
 * Adds a check, and gives its id. A heartbeat has a token, which is shown once: one is made unless
 * it is given. Throws 409 where its service has a check of this name.
 */
export function addCheck(
  tools: DefinitionTools & { random: RandomBytes },
  { service, check }: NewCheck,
  now: Date,
): Promise<{ id: number; token: string | null }> {
  const token = newToken(check, tools.random)
  const { name, columns } = written(tools, service, withTokenHash(check, token), {})
  return makeChange(tools, noteOf('add', service, name), async (tx) => {
    const row = { service, name, ...columns, now, most: MAX_BY_HAND }
    const added = await q.addDefinition(tx, row)
    if (added === undefined) throw await noRoomFor(tx, service, name)
    return { id: added.id, token }
  })
}

/** The check that a definition would add, to be tried first. Throws what adding it would throw. */
export function checkToTry(
  tools: DefinitionTools & { random: RandomBytes },
  { service, check }: NewCheck,
): Check {
  const definition = withTokenHash(check, newToken(check, tools.random))
  written(tools, service, definition, {})
  return definition as Check
}

/** The token of a new heartbeat; null where its hash is given, and for other checks. */
function newToken({ type, token, token_sha256 }: Definition, random: RandomBytes): string | null {
  if (type !== 'heartbeat' || token_sha256 !== undefined) return null
  return typeof token === 'string' ? token : random(TOKEN_BYTES).toString('base64url')
}

/** A definition without its token: the table has the hash alone. */
function withTokenHash(check: Definition, token: string | null): Definition {
  if (token === null) return check
  const { token: _token, token_sha256: _former, ...rest } = check
  refuseMistake({ ...rest, token })
  return { ...rest, token_sha256: hashToken(token).toString('hex') }
}

/** Changes the definition of a check. Throws 404, and 409 for one of the inventory file. */
export async function changeCheck(
  tools: DefinitionTools,
  id: number,
  given: Definition,
  now: Date,
): Promise<void> {
  await tools.db.transaction(async (tx) => {
    const held = await holdByHand(tx, id)
    const { service } = held
    const { token = null } = given
    const check = withTokenHash({ name: held.name, ...given }, token as string | null)
    const { name, columns } = written(tools, service, check, held.headers)
    if (name !== held.name) {
      throw badRequest('name must stay: remove the check and add another one', 'name')
    }
    await q.setDefinition(tx, { id, ...columns, now })
    await noteChange(tx, tools.actor, noteOf('set', service, name))
  })
}

/** Removes a check; its history stays. Throws 404, and 409 for one of the inventory file. */
export async function removeCheck({ db, actor }: ChangeTools, id: number, now: Date) {
  await db.transaction(async (tx) => {
    const { service, name } = await holdByHand(tx, id)
    await q.removeDefinition(tx, { id, now })
    await noteChange(tx, actor, noteOf('remove', service, name))
  })
}

/** What was made by hand of a check, as it is shown; null where the inventory file has it. */
export async function findDefinition(db: Executor, id: number): Promise<Definition | null> {
  const { source, definition, headers } = found(await q.findDefinition(db, { id }), 'check')
  if (source === 'file' || definition === null) return null
  const names = Object.keys(headers)
  if (names.length === 0) return definition
  const shown = Object.fromEntries(names.map((name) => [name, CONFIGURED]))
  return { ...definition, headers: shown }
}

async function holdByHand(tx: Executor, id: number) {
  const held = found(await q.lockDefinition(tx, { id }), 'check')
  if (held.source === 'hand' && held.definition !== null) return held
  throw conflict(`${referenceOf(held)} stands in the inventory file: change it there`)
}

/** Throws 400 for a check that can't be made by hand. */
export function refuseMistake(given: Definition): void {
  const mistake = mistakeByHand(given)
  if (mistake === undefined) return
  const [place, expected] = mistake
  const path = place.slice(1).replaceAll('/', '.')
  const [member = ''] = path.split('.')
  throw badRequest(`${path || 'the check'} ${expected}`, member || undefined)
}

/** What is stored of a definition. */
function written(
  { box, redact }: DefinitionTools,
  service: string,
  given: Definition,
  stored: SealedHeaders,
): Written {
  refuseMistake(given)
  const { length } = JSON.stringify(given, refuseUnstorable)
  if (length > MAX_DEFINITION) {
    throw badRequest(`the check must have ${MAX_DEFINITION} characters at most`)
  }
  const check = given as Check
  const name = storedName(check, redact)
  const { headers, ...rest } = given
  const sealed = sealHeaders(box, { service, name }, headers, stored)
  return {
    name,
    columns: { ...columnsOf(check), definition: { ...rest, name }, headers: sealed },
  }
}

/** PostgreSQL stores neither NUL nor half characters. */
function refuseUnstorable(member: string, value: unknown): unknown {
  if (typeof value === 'string' && (value.includes('\0') || !value.isWellFormed())) {
    throw badRequest(`${member} must have no NUL and no half characters`, member)
  }
  return value
}

async function noRoomFor(tx: Executor, service: string, name: string): Promise<Fault> {
  const reference = referenceOf({ service, name })
  const [known] = await q.findByReference(tx, { reference, limit: 1 })
  if (known?.exact !== true) {
    return conflict(`${MAX_BY_HAND} checks were made by hand already: remove one first`)
  }
  return conflict(`there is a check ${reference} already: choose another name`, 'name')
}

function conflict(message: string, member?: string): Fault {
  return new Fault(409, 'CONFLICT', message, member === undefined ? {} : { field: member })
}

/** The check that SERVICE/NAME means; throws 404. */
export async function findCheck(db: Executor, reference: string) {
  const known = await findReference(db, reference)
  if (known.exact) return known
  throw unknownCheck(reference)
}

/** The same, or a check of the service that a text means: then it is not `exact`. */
export async function findReference(db: Executor, reference: string) {
  const [known] = await q.findByReference(db, { reference, limit: 1 })
  if (known !== undefined) return known
  throw unknownCheck(reference)
}

function unknownCheck(reference: string): Fault {
  return notFound(`there is no check "${reference}": checks list shows all as SERVICE/NAME`)
}

/** How people name a check. */
export function referenceOf({ service, name }: Pick<HeldDefinition, 'service' | 'name'>): string {
  return `${service}/${name}`
}

/** The line of a change in the audit. */
function noteOf(verb: string, service: string, name: string): ChangeNote {
  return { service: 'ops', action: `checks ${verb}`, subject: referenceOf({ service, name }) }
}
