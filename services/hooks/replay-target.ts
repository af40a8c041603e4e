import type { HostSet } from '../../kernel/net/addresses.ts'

/** Where an event may be sent. */
export interface ReplayTarget {
  readonly url: URL
  /** True when an operator vouches for it: it may then be on a private network. */
  readonly trusted: boolean
}

/** What a target is allowed to be, in words. */
export const TARGET_FORM = 'an http:// or https:// URL without credentials'

/** Reads a target URL; undefined for anything that is not `TARGET_FORM`. */
export function parseTarget(text: string): URL | undefined {
  // A URL parser drops or encodes control characters; what is stored is the text itself.
  if (text.length > 2_048 || /\p{Cc}/u.test(text) || !URL.canParse(text)) return undefined
  const url = new URL(text)
  const plain = /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
  return plain ? url : undefined
}

/**
 * The target of a replay: the argument, else the configured default (decisions.md section 3). Only
 * the default itself and the hosts of HOOKS_REPLAY_TARGETS are trusted. A message when there is none.
 */
export function chooseTarget(
  argument: string | undefined,
  defaultTarget: string | null,
  allowed: HostSet | undefined,
): ReplayTarget | { readonly message: string } {
  const fallback = defaultTarget === null ? undefined : parseTarget(defaultTarget)
  if (argument === undefined && fallback === undefined) {
    return { message: 'Give a target URL; the settings name no default target.' }
  }
  const url = argument === undefined ? fallback : parseTarget(argument)
  if (url === undefined) return { message: `The target URL must be ${TARGET_FORM}.` }
  return { url, trusted: url.href === fallback?.href || allowed?.(url) === true }
}
