import { Visibility } from '../../db/links/names/links.ts'
import { badRequest } from '../../kernel/fault.ts'
import { DURATION_FORM, INSTANT_FORM, readTime } from '../../kernel/time.ts'
import { validate } from '../../kernel/validate.ts'
import { oneOf, trueOrFalse } from '../../kernel/variables.ts'
import {
  LinkRequest,
  LinkUpdate,
  partsOf,
  typedNumber,
  typedSlug,
  type LinkCreation,
} from '../../services/links/names/links/input.ts'
import { refusePastExpiry } from '../../services/links/names/links/lifecycle.ts'
import { checkSlug } from '../../services/links/names/links/slug.ts'
import { completeUrl } from '../../services/links/names/links/target.ts'
import {
  fieldsOf,
  lines,
  readFields,
  text,
  UsageError,
  value,
  type Call,
} from '../frame/command.ts'

// The flags that say what a link has. People type them: a bare address gets its `https://`, as in
// the form of a link.

export const LINK_FLAGS = {
  title: text('TEXT', 'what lists show beside the slug'),
  description: {
    ...text('TEXT', 'for those who want to know more; - is standard input'),
    fromInput: true,
  },
  tag: { ...lines('TAG', 'a tag'), read: (given: string) => partsOf(given, /[,\n]/) },
  visibility: value(
    Visibility.enum.join('|'),
    'who finds it, and for secure who may follow it; public unless given',
    oneOf(...Visibility.enum),
  ),
  'append-path': value(
    'true|false',
    'whether the further path of a visit is appended',
    trueOrFalse,
  ),
  expires: text('WHEN', `when its visits end: ${INSTANT_FORM}, or ${DURATION_FORM}`),
  'max-visits': { ...text('N', 'after how many visits they end'), read: typedNumber },
} as const

export const EDIT_FLAGS = {
  url: text('URL', 'where it leads'),
  ...LINK_FLAGS,
  archived: value('true|false', 'whether its visits have ended by hand', trueOrFalse),
} as const

type LinkFlags = Partial<Call<Record<string, never>, typeof EDIT_FLAGS>['flags']>
export type LinkFields = Readonly<Record<string, unknown>>

/** The new link that a call describes. */
export function readNewLink(
  { slug, url }: { slug: string; url: string },
  flags: LinkFlags,
  now: Date,
): LinkCreation {
  return readFields(() => {
    const link = { ...validate(LinkRequest, given({ ...flags, url }, now)), slug: typedSlug(slug) }
    checkSlug(link.slug)
    refusePastExpiry(link, now)
    return link
  }, ['slug', 'url'])
}

/** The fields that the flags of an edit name; an empty text clears one. */
export function readEdit(flags: LinkFlags, now: Date): LinkFields {
  const fields = readFields(() => {
    const changes = given(flags, now)
    refusePastExpiry(validate(LinkUpdate, { url: 'https://example.com/', ...changes }), now)
    return changes
  })
  if (Object.keys(fields).length > 0) return fields
  throw new UsageError('Nothing to change: name a field, such as --url or --title')
}

/** The fields of the API that flags name. */
function given(flags: LinkFlags, now: Date): LinkFields {
  const { url, expires } = flags
  return {
    ...fieldsOf(LinkUpdate, flags),
    ...(url !== undefined && { url: completeUrl(url) }),
    ...(expires !== undefined && { expires_at: expiryOf(expires, now) }),
  }
}

function expiryOf(text: string, now: Date): string | null {
  if (text === '') return null
  const at = readTime(text, now)
  if (at !== undefined) return at.toISOString()
  throw badRequest(`expires_at must be ${INSTANT_FORM}, or ${DURATION_FORM}`, 'expires_at')
}
