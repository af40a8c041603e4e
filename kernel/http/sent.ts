import { isDeepStrictEqual } from 'node:util'
import * as Type from '../schema.ts'
import type { Static, TObject, TSchema } from '../schema.ts'
import { Fault } from '../fault.ts'
import { objectOf } from '../json.ts'
import {
  refuseUnknown,
  typeOf,
  validate,
  validateQuery,
  validateTexts,
  withDefault,
} from '../validate.ts'
import { isEmptyBody } from './body.ts'
import { queryOf, type Context } from './context.ts'
import { readFileForm, readForm, readJson } from './read-body.ts'
import type { Typed } from './view.ts'

/** Validates texts of a request; `wrong` makes the fault of those that are not valid. */
export function readTexts<S extends TObject>(
  schema: S,
  textOf: (name: string) => string | undefined,
  wrong: (fault: Fault) => Fault,
): Static<S> {
  try {
    return validateTexts(schema, textOf)
  } catch (error) {
    throw error instanceof Fault ? wrong(error) : error
  }
}

/** The validated query of a request. */
export function readQuery<Q extends TObject>(query: Q | undefined, context: Context): Static<Q> {
  if (query === undefined) return {} as Static<Q>
  return validateQuery(query, queryOf(context))
}

/** What a PUT replaces. */
interface Replaced {
  /** The thing as it is now, as GET answers it. */
  current: () => unknown
  /** Members that may differ from it. */
  mayDiffer: readonly string[]
}

/**
 * The validated JSON object of a request, and the names of ignored members for `ignoredHeader`.
 * Those of the answer that the body does not have are read-only: of a thing that is replaced, they
 * must be as they are now. Elsewhere they are not named, so that what GET gives may be sent back.
 */
export async function readObject<B extends TObject>(
  body: B,
  context: Context,
  { bodyLimit, unknownMember = 400 }: { bodyLimit: number; unknownMember?: number },
  answer?: TSchema,
  replaced?: Replaced,
): Promise<{ sent: Static<B>; ignored: readonly string[] }> {
  const given = await readJson(context, bodyLimit)
  const shown = answer !== undefined && Type.IsObject(answer) ? answer.properties : {}
  refuseUnknown(body, given, unknownMember, replaced && shown)
  const sent = validate(body, given)
  const others = Object.keys(given).filter((name) => !Object.hasOwn(body.properties, name))
  const unknown = others.filter((name) => !Object.hasOwn(shown, name))
  const readOnly = others.filter((name) => Object.hasOwn(shown, name))
  if (replaced === undefined || readOnly.length === 0) return { sent, ignored: unknown }
  // As JSON has it: times are texts.
  const current = objectOf(JSON.parse(JSON.stringify(await replaced.current())))
  const differing = readOnly.filter((name) => !isDeepStrictEqual(given[name], current[name]))
  const refused = differing.find((name) => !replaced.mayDiffer.includes(name))
  if (refused !== undefined) {
    const message = `${refused} is read-only: leave it out, or send it unchanged.`
    throw new Fault(unknownMember, 'BAD_REQUEST', message, { field: refused })
  }
  return { sent, ignored: [...unknown, ...differing] }
}

/** A field of a form that is a file: in base64, and empty where none was chosen. */
export const FileField = withDefault(Type.String({ contentEncoding: 'base64' }), '')

/**
 * The fields of a form as typed; one with a file is sent as multipart/form-data. A browser does not
 * send a box that is not ticked: such a field has a default. Boxes of one name, of which any number
 * may be ticked, are the lines of one text.
 */
export async function readTyped(body: TObject, context: Context, limit?: number): Promise<Typed> {
  const required = new Set(body.required)
  const properties = Object.entries(body.properties)
  const boxes = properties.filter(
    ([name, schema]) => typeOf(schema) === 'boolean' && !required.has(name),
  )
  const lists = properties.filter(([, schema]) => typeOf(schema) === 'array').map(([name]) => name)
  const unticked = Object.fromEntries(boxes.map(([name]) => [name, 'false']))
  // A post without a body is one without fields, where all of them may be left out.
  const isBare = context.headers['content-type'] === undefined && isEmptyBody(context)
  if (isBare && required.size === 0) return unticked
  const hasFile = properties.some(([, schema]) => 'contentEncoding' in schema)
  if (hasFile) return { ...unticked, ...(await readFileForm(context, limit)) }
  return { ...unticked, ...(await readForm(context, limit, lists)) }
}
