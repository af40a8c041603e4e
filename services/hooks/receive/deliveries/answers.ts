import * as Type from '../../../../kernel/schema.ts'
import {
  type ChosenAnswer,
  DeliveryMethod,
  type Provider,
  type TrustMode,
} from '../../../../db/hooks/receive/providers.ts'
import { Fault } from '../../../../kernel/fault.ts'
import { field } from '../../../../kernel/validate.ts'
import type { PlainAnswer } from '../schemes/handshakes.ts'
import type { Scheme } from '../schemes/scheme.ts'

// The methods that a generic receiver takes, and its answer to a stored delivery. An operator
// chooses both.

/** The methods that may be chosen, in the order of a list. */
export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

export const METHODS_FORM = 'some of GET, POST, PUT, PATCH and DELETE'
/** A redirect would need an address, and none is sent. */
export const STATUS_FORM = '200 to 299, or 400 to 599'
export const MAX_BODY = 4_096
const BODY_FORM = `must be text of ${MAX_BODY} bytes at most.`

/** The fields of a form; an empty text stands for an absent one. */
export const AnswerFields = Type.Object({
  methods: field(Type.Optional(Type.Array(DeliveryMethod)), `must be ${METHODS_FORM}.`),
  answer_status: field(Type.Optional(Type.String()), `must be ${STATUS_FORM}.`, [
    (text) => /^(?:[245]\d\d)?$/.test(text),
    `must be ${STATUS_FORM}.`,
  ]),
  answer_type: field(
    Type.Optional(Type.Enum(['', 'text/plain', 'application/json', 'application/xml'])),
    'must be text/plain, application/json or application/xml.',
  ),
  answer_body: field(Type.Optional(Type.String()), BODY_FORM, [
    // jsonb holds no NUL and no half of a character.
    (text) => Buffer.byteLength(text) <= MAX_BODY && text.isWellFormed() && !text.includes('\0'),
    BODY_FORM,
  ]),
})
export type AnswerFields = Type.Static<typeof AnswerFields>

/** What an operator has chosen. Null restores what is usual; an absent member changes nothing. */
export interface AnswerChanges {
  methods?: readonly DeliveryMethod[] | null
  answer?: ChosenAnswer | null
}

/** Reads what an operator has chosen. Throws a fault that names a field without effect. */
export function readAnswers(fields: AnswerFields): AnswerChanges {
  const { methods, answer_status, answer_type, answer_body } = fields
  const isAnswered = [answer_status, answer_type, answer_body].some((text) => text !== undefined)
  return {
    ...(methods !== undefined && { methods: chosenMethods(methods) }),
    ...(isAnswered && { answer: chosenAnswer(fields) }),
  }
}

/** POST alone is what every receiver takes. */
function chosenMethods(given: readonly DeliveryMethod[]): readonly DeliveryMethod[] | null {
  const methods = METHODS.filter((method) => given.includes(method))
  return methods.length === 0 || methods.join() === 'POST' ? null : methods
}

function chosenAnswer(fields: AnswerFields): ChosenAnswer | null {
  const { answer_status: status, answer_type: type } = fields
  // A form sends every line break as CRLF.
  const body = fields.answer_body?.replaceAll('\r\n', '\n') ?? ''
  if (type && body === '') {
    throw wrong('answer_type', 'needs answer_body: without a body no type is sent.')
  }
  if (body !== '' && (status === '204' || status === '205')) {
    throw wrong('answer_body', `must be empty: an answer of ${status} has no body.`)
  }
  if (!status && body === '') return null
  return { status: Number(status || 200), type: body === '' ? null : type || 'text/plain', body }
}

type Signed = Pick<Scheme, 'signed' | 'covers'>

/**
 * Refuses GET and DELETE for a scheme that does not sign the address. Their content is the query:
 * the signature of one delivery would verify any other query.
 */
export function checkMethods(
  methods: readonly DeliveryMethod[] | null,
  trust_mode: TrustMode,
  scheme: Signed | undefined,
): void {
  if (trust_mode !== 'signed' || scheme?.covers === 'caller') return
  if (scheme?.signed.includes('{url}')) return
  const bare = methods?.find((method) => method === 'GET' || method === 'DELETE')
  if (bare === undefined) return
  throw wrong('methods', `can't have ${bare}: this scheme signs the body and not the query.`)
}

type Chosen = Pick<Provider, 'methods' | 'answer'>

/** Whether a receiver takes a method. HEAD asks what GET would be answered. */
export function takesMethod({ methods }: Chosen, method: string): boolean {
  const wanted = method === 'HEAD' ? 'GET' : method
  return (methods ?? ['POST']).some((one) => one === wanted)
}

/** The header `Allow` of a receiver. */
export function allowOf({ methods }: Chosen): string {
  if (methods === null) return 'POST'
  const all = [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS']
  return all.toSorted().join(', ')
}

/** The answer as it is sent; the text may be of any language. */
export function toAnswer({ status, type, body }: ChosenAnswer): PlainAnswer {
  if (type === null) return { status }
  return { status, type: type === 'text/plain' ? 'text/plain; charset=utf-8' : type, body }
}

/** 422: hooks.md asks for it where a form has a wrong value. */
function wrong(name: string, message: string): Fault {
  return new Fault(422, 'UNPROCESSABLE', `${name} ${message}`, { field: name })
}
