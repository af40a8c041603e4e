import type { IncomingHttpHeaders } from 'node:http'

/**
 * The media type of a `Content-Type` header, in lower case and without parameters; '' without the
 * header.
 */
export function mediaType(contentType: string | undefined): string {
  return (contentType ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
}

/**
 * A parameter of a header such as `Content-Type` or `Content-Disposition`; undefined without it.
 * Within quotation marks a backslash stands before a character that it keeps from its meaning.
 */
export function headerParameter(header: string | undefined, name: string): string | undefined {
  for (const [, key = '', quoted, bare] of (header ?? '').matchAll(PARAMETER)) {
    if (key.toLowerCase() === name) return quoted?.replace(/\\(.)/g, '$1') ?? bare
  }
  return undefined
}

const PARAMETER = /;\s*([\w*-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/g

/**
 * Whether an `If-None-Match` names this entity tag (RFC 9110 section 13.1.2): `*`, or a list with
 * it. Proxies that compress an answer make its tag weak, so weak and strong ones are compared
 * alike.
 */
export function namesTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false
  if (header.trim() === '*') return true
  return header.match(/"[^"]*"/g)?.some((named) => named === tag) === true
}

/**
 * Whether a request with this `If-Match` may change what has this strong entity tag (RFC 9110
 * section 13.1.1). Without the header it may. A weak tag matches nothing.
 */
function ifMatches(header: string | undefined, etag: string): boolean {
  if (header === undefined || header.trim() === '*') return true
  return header.split(',').some((tag) => tag.trim() === etag)
}

/** A strong entity tag of a version. */
export function entityTag(version: string): string {
  return `"${version}"`
}

/** Whether a change may be made to what is in this version. */
export type Precondition = (version: string) => boolean

/** The precondition of a request's `If-Match`; without the header every version may be changed. */
export function preconditionOf(headers: IncomingHttpHeaders): Precondition {
  return (version) => ifMatches(headers['if-match'], entityTag(version))
}
