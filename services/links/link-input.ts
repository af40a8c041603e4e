import Type from 'typebox'
import type { Link, Visibility } from '../../db/links/rows.ts'
import { refusal, type Refusal } from './refusal.ts'
import { refuseSlug, SLUG_LONGEST, SLUG_PATTERN } from './slug.ts'
import { LOCATION_LONGEST, refuseTarget, URL_LONGEST } from './target.ts'
import { TURNS_TEXT } from '../../kernel/text.ts'

const TITLE_LONGEST = 200
const DESCRIPTION_LONGEST = 2_000
const TAGS_MOST = 20
const TAG_LONGEST = 50
const TAG = /^[a-z0-9][a-z0-9-]*$/
const VISIBILITIES: readonly string[] = ['public', 'private', 'secure'] satisfies Visibility[]

const fields = {
  url: Type.String({
    maxLength: URL_LONGEST,
    description:
      'An http:// or https:// URL; spaces around it are dropped. ' +
      `Percent-encoded, it may have ${LOCATION_LONGEST} bytes.`,
  }),
  title: Type.Optional(Type.String({ maxLength: TITLE_LONGEST })),
  description: Type.Optional(Type.String({ maxLength: DESCRIPTION_LONGEST })),
  tags: Type.Optional(
    Type.Array(Type.String(), {
      description:
        `Up to ${TAG_LONGEST} of a-z, 0-9 and - each; A-Z, _ and spaces are folded. ` +
        `What is the same then counts once, ${TAGS_MOST} at most.`,
    }),
  ),
  visibility: Type.Optional(Type.Enum(['public', 'private', 'secure'])),
  append_path: Type.Optional(Type.Boolean()),
}

const EXAMPLE = { url: 'https://docs.example.com/handbook', title: 'Handbook', tags: ['docs'] }

/** What PUT takes: omitted texts and tags are cleared, `visibility` and `append_path` kept. */
export const LinkUpdate = Type.Object(fields, { examples: [EXAMPLE] })
/** What POST takes. */
export const LinkCreation = Type.Object(
  {
    slug: Type.String({ pattern: SLUG_PATTERN, minLength: 2, maxLength: SLUG_LONGEST }),
    ...fields,
  },
  { examples: [{ slug: 'handbook', ...EXAMPLE }] },
)

/** What a writer said of a link, checked; `undefined` where nothing was said. */
export interface LinkInput extends Pick<Link, 'url' | 'title' | 'description' | 'tags'> {
  readonly visibility: Visibility | undefined
  readonly append_path: boolean | undefined
}

/** Reads the slug of a new link; the refusal says what is wrong with it. */
export function readSlug(body: Readonly<Record<string, unknown>>): string | Refusal {
  const { slug } = body
  if (typeof slug !== 'string') return missing('slug', slug, 'a string')
  return refuseSlug(slug) ?? slug
}

/** Reads everything that may change of a link, in the order of its fields. */
export function readLinkInput(body: Readonly<Record<string, unknown>>): LinkInput | Refusal {
  const { title = '', description = '', tags = [], visibility, append_path } = body
  if (typeof body['url'] !== 'string') return missing('url', body['url'], 'a string')
  const url = withoutSpacesAround(body['url'])
  const badTarget = refuseTarget(url)
  if (badTarget !== undefined) return badTarget
  const badText =
    refuseText('title', title, TITLE_LONGEST) ??
    refuseText('description', description, DESCRIPTION_LONGEST)
  if (badText !== undefined) return badText
  const cleanTags = readTags(tags)
  if ('refused' in cleanTags) return cleanTags
  if (visibility !== undefined && !isVisibility(visibility)) {
    const message = 'visibility must be public, private or secure'
    return refusal('INVALID_VISIBILITY', message, 'visibility')
  }
  if (append_path !== undefined && typeof append_path !== 'boolean') {
    return missing('append_path', append_path, 'true or false')
  }
  return {
    url,
    title: String(title),
    description: String(description),
    tags: cleanTags.tags,
    visibility,
    append_path,
  }
}

/** A url as people paste it. Line ends and other control characters stay, to be refused. */
function withoutSpacesAround(url: string): string {
  return /\p{Cc}/u.test(url) ? url : url.trim()
}

/** Tags in their normal form, each once, sorted. */
function readTags(value: unknown): { readonly tags: string[] } | Refusal {
  if (!Array.isArray(value)) return missing('tags', value, 'an array of strings')
  const tags = new Set<string>()
  for (const tag of value) {
    if (typeof tag !== 'string') return missing('tags', tag, 'an array of strings')
    const normal = tag.toLowerCase().replaceAll(/[_ ]/g, '-')
    if (normal.length > TAG_LONGEST || !TAG.test(normal)) {
      const message = `tags: each must have 1 to ${TAG_LONGEST} of a-z, 0-9 and -, and not begin with -`
      return refusal('INVALID_TAG', message, 'tags')
    }
    tags.add(normal)
  }
  if (tags.size <= TAGS_MOST) return { tags: [...tags].toSorted() }
  return refusal('TOO_MANY_TAGS', `tags: ${TAGS_MOST} at most`, 'tags')
}

function refuseText(field: string, value: unknown, longest: number): Refusal | undefined {
  if (typeof value !== 'string') return missing(field, value, 'a string')
  // Neither can be stored as it is: a text would come back as another one.
  if (value.includes('\0') || !value.isWellFormed()) {
    return refusal('BAD_REQUEST', `${field} must have no NUL and no half of a character`, field)
  }
  if (TURNS_TEXT.test(value)) {
    const message = `${field} must have no characters that turn the direction of text`
    return refusal('BAD_REQUEST', message, field)
  }
  // Characters as the database counts them, not the halves of which JavaScript makes some.
  if (value.length <= longest || [...value].length <= longest) return undefined
  const message = `${field} may have ${longest} characters at most`
  return refusal('INVALID_FIELD_LENGTH', message, field)
}

function missing(field: string, value: unknown, form: string): Refusal {
  const verb = value === undefined ? 'is required and must be' : 'must be'
  return refusal('BAD_REQUEST', `${field} ${verb} ${form}`, field)
}

export function isVisibility(value: unknown): value is Visibility {
  return VISIBILITIES.some((known) => known === value)
}
