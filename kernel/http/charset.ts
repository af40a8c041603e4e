import { headerParameter } from './headers.ts'

/** Byte order marks, and the charsets that they stand for. */
const MARKS = [
  [Buffer.from([0xef, 0xbb, 0xbf]), 'utf-8'],
  [Buffer.from([0xff, 0xfe]), 'utf-16le'],
  [Buffer.from([0xfe, 0xff]), 'utf-16be'],
] as const
/** The declaration of XML is ASCII in all charsets but UTF-16. */
const XML_HEAD = /^<\?xml\s[^>]{0,100}?\bencoding\s*=\s*["']([\w.:-]{1,40})["']/
const XML_HEAD_BYTES = 200
const LESS_THAN = 0x3c

/** The charset that a body begins with a mark of; undefined without a mark. */
export function markedCharset(body: Buffer): string | undefined {
  return MARKS.find(([mark]) => body.subarray(0, mark.length).equals(mark))?.[1]
}

/**
 * The charset of a body, under the name that `TextDecoder` gives it: by its byte order mark, else
 * by its content type, else by the declaration of XML. Undefined where none of them names one that
 * is known.
 */
export function charsetOf(body: Buffer, contentType: string | undefined): string | undefined {
  const named = markedCharset(body) ?? headerParameter(contentType, 'charset') ?? declared(body)
  return named === undefined ? undefined : knownCharset(named)
}

function declared(body: Buffer): string | undefined {
  if (body[0] !== LESS_THAN) return undefined
  return XML_HEAD.exec(body.toString('latin1', 0, XML_HEAD_BYTES))?.[1]
}

/** The usual name of a charset: `windows-1252` for `iso-8859-1`. Undefined for an unknown one. */
export function knownCharset(name: string): string | undefined {
  try {
    return new TextDecoder(name).encoding
  } catch {
    // RangeError: no such charset.
    return undefined
  }
}
