import type { EventDetail } from '../../log/events/detail.ts'
import { REDACTED } from '../../redact.ts'
import { isRepeatable } from './outgoing.ts'

// Commands that send an event again from a terminal.

/** Headers that curl sets by itself. */
const SET_BY_CURL = /^(accept|accept-encoding|user-agent)$/

/** The largest payload that the command itself contains. */
const MAX_INLINE = 16 * 1024

/** Control characters: a page, a clipboard or a terminal changes, drops or obeys them. */
const NOT_PASTED = /[^\P{Cc}\n\t]/u

/**
 * A command line that sends the stored bytes to a receiver. A secret header has the value
 * `REPLACE_ME`, because its value was never stored. The command fetches a payload that is long,
 * binary or has control characters; it leaves out headers with control characters.
 */
export function curlCommand(event: EventDetail, receiver: string, payloadUrl: string): string {
  const inline =
    event.payload_encoding === 'utf8' &&
    event.payload_size <= MAX_INLINE &&
    !NOT_PASTED.test(event.payload)
  const { method, query = null } = event
  const address = query === null ? receiver : `${receiver}?${query}`
  const command = method === undefined ? 'curl -sS' : `curl -sS -X ${method}`
  const lines = [`${inline ? '' : `curl -sS ${quote(payloadUrl)} | `}${command} ${quote(address)}`]
  for (const [name, value] of Object.entries(event.headers)) {
    if (!isRepeatable(name) || SET_BY_CURL.test(name) || NOT_PASTED.test(value)) continue
    lines.push(`-H ${quote(`${name}: ${value === REDACTED ? placeholder(name) : value}`)}`)
  }
  const isBare = method !== undefined && event.payload_size === 0
  if (!isBare) lines.push(inline ? `--data-raw ${quote(event.payload)}` : '--data-binary @-')
  return lines.join(' \\\n  ')
}

/** Where a program in development usually listens. */
const LAPTOP = 'http://127.0.0.1:3000/'

/**
 * A command that posts an event, and what its provider sends from then on, to a program on one's
 * own machine. Its name is new for each event: the server keeps a position for a known one.
 */
export function forwardCommand({ id, provider }: EventDetail, server: string): string {
  const choice = `--provider ${quote(provider)} --since ${id} --name ${quote(`from event ${id}`)}`
  return `gatehouse forward ${LAPTOP} --from ${quote(server)} ${choice}`
}

/** What stands for a value that is not stored; tokens are accepted in this form only. */
function placeholder(name: string): string {
  return name === 'authorization' ? 'Bearer REPLACE_ME' : 'REPLACE_ME'
}

/** Text as one word of a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
