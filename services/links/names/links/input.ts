import * as Type from '../../../../kernel/schema.ts'
import { Visibility } from '../../../../db/links/names/links.ts'
import { badRequest, type Fault } from '../../../../kernel/fault.ts'
import { TURNS_TEXT } from '../../../../kernel/text.ts'
import { field, parsed, validate, withDefault } from '../../../../kernel/validate.ts'
import { linksFault } from '../../faults.ts'
import { lifecycleFields } from './lifecycle.ts'
import { checkSlug, MAX_SLUG, SLUG_PATTERN } from './slug.ts'
import { checkTarget, completeUrl, MAX_LOCATION, MAX_URL } from './target.ts'

export const MAX_TITLE = 200
export const MAX_DESCRIPTION = 2_000
const MAX_TAGS = 20
const MAX_TAG = 50
export const MAX_ALIASES = 20
const TAG = /^[a-z0-9][a-z0-9-]*$/

const STRING = { missing: 'is required and must be a string', wrong: 'must be a string' }

const SlugText = Type.String({ pattern: SLUG_PATTERN, minLength: 2, maxLength: MAX_SLUG })
const slug = parsed(SlugText, STRING, readSlug)
const optionalSlug = slugField('Required, unless one is generated (`?generate=true`)')
/** Another name for a deleted link. */
export const restoredSlug = slugField('Another name for the link')

const fields = {
  url: parsed(
    Type.String({
      maxLength: MAX_URL,
      description:
        'An http:// or https:// URL, or one of a scheme in LINKS_SCHEMES; spaces around it are ' +
        'dropped. A visit fills {1} to {9}, {*} and {user}, or their defaults as in {1:main}. ' +
        `Percent-encoded, it may have ${MAX_LOCATION} bytes.`,
    }),
    STRING,
    (given) => {
      if (typeof given !== 'string') return undefined
      // Line ends and other control characters stay, to be refused.
      const url = /\p{Cc}/u.test(given) ? given : given.trim()
      checkTarget(url)
      return url
    },
  ),
  title: textField(MAX_TITLE),
  description: textField(MAX_DESCRIPTION),
  tags: parsed(
    withDefault(
      Type.Array(Type.String(), {
        description:
          `Up to ${MAX_TAG} of a-z, 0-9 and - each; A-Z, _ and spaces are folded. ` +
          `What is the same then counts once, ${MAX_TAGS} at most.`,
      }),
      [],
    ),
    'must be an array of strings',
    readTags,
  ),
  visibility: field(Type.Optional(Visibility), {
    code: 'INVALID_VISIBILITY',
    text: 'must be public, private or secure',
  }),
  append_path: field(Type.Optional(Type.Boolean()), 'must be true or false'),
  ...lifecycleFields,
  aliases: parsed(
    Type.Optional(
      Type.Array(Type.String(), {
        description: `Further names of the link, ${MAX_ALIASES} at most, each of the form of a slug.`,
      }),
    ),
    'must be an array of strings',
    readAliases,
  ),
}

const EXAMPLE = { url: 'https://docs.example.com/handbook', title: 'Handbook', tags: ['docs'] }

/** What PUT takes: omitted texts and tags are cleared, all other omitted fields kept. */
export const LinkUpdate = Type.Object(fields, { examples: [EXAMPLE] })
export type LinkUpdate = Type.Static<typeof LinkUpdate>

/** What POST takes, which may generate the slug. */
export const LinkRequest = Type.Object(
  { slug: optionalSlug, ...fields },
  { examples: [{ slug: 'handbook', ...EXAMPLE }] },
)
export type LinkRequest = Type.Static<typeof LinkRequest>

/** A new link with its slug. */
export type LinkCreation = LinkRequest & { slug: string }

/** The new slug of a link. */
export const NewSlug = Type.Object({ slug }, { examples: [{ slug: 'handbook' }] })

/** The form in which people type it. */
export const NewSlugForm = Type.Object({ slug: field(Type.String(), 'is required') })
export type NewSlugForm = Type.Static<typeof NewSlugForm>

/** The Fault of a link without a slug. */
export function slugMissing(): Fault {
  return badRequest(`slug ${STRING.missing}`, 'slug')
}

const required = field(Type.String(), 'is required')

const formFields = {
  url: required,
  title: withDefault(Type.String(), ''),
  description: withDefault(Type.String(), ''),
  /** Separated by commas. */
  tags: withDefault(Type.String(), ''),
  visibility: Type.Optional(Type.String()),
  append_path: withDefault(Type.Boolean(), false),
  /** In UTC, as browsers send it: without a zone. */
  expires_at: Type.Optional(Type.String()),
  max_visits: Type.Optional(Type.String()),
  archived: withDefault(Type.Boolean(), false),
  /** Separated by commas or spaces. */
  aliases: Type.Optional(Type.String()),
}

/** The form of a new link, as people type it. Without a slug, one is generated. */
export const NewLinkForm = Type.Object({ slug: withDefault(Type.String(), ''), ...formFields })
export type NewLinkForm = Type.Static<typeof NewLinkForm>

/** The form of a link that is edited. Programs may leave out the version that they replace. */
export const EditForm = Type.Object({ ...formFields, version: Type.Optional(Type.String()) })
export type EditForm = Type.Static<typeof EditForm>

function slugField(description: string) {
  return parsed(Type.Optional(Type.String({ ...SlugText, description })), STRING, readSlug)
}

/** The slug that people mean who type capitals or spaces around it. */
export function typedSlug(text: string): string {
  return text.trim().toLowerCase()
}

/** The link that a form asks for, by the rules of the API. */
export function readNewLinkForm(form: NewLinkForm): LinkRequest {
  return validate(LinkRequest, { ...apiFields(form), slug: typedSlug(form.slug) || undefined })
}

/** The slug that a form asks for, by the rules of the API. */
export function readNewSlugForm({ slug }: NewSlugForm): Type.Static<typeof NewSlug> {
  return validate(NewSlug, { slug: typedSlug(slug) })
}

/** What a form changes of a link, by the rules of the API. */
export function readEditForm(form: EditForm): LinkUpdate {
  return validate(LinkUpdate, apiFields(form))
}

function apiFields(form: NewLinkForm | EditForm) {
  const { url, title, description, tags, expires_at, max_visits, aliases, ...rest } = form
  return {
    ...rest,
    expires_at: expires_at === undefined ? undefined : typedTime(expires_at),
    max_visits: max_visits === undefined ? undefined : typedNumber(max_visits),
    url: completeUrl(url),
    title: title.trim(),
    description: description.trim(),
    tags: partsOf(tags, /[,\n]/),
    aliases: aliases === undefined ? undefined : partsOf(aliases, /[,\s]/).map(typedSlug),
  }
}

/** The time that a browser sends without its zone; null for none. */
function typedTime(text: string): string | null {
  const time = text.trim()
  if (time === '') return null
  return /^[\d-]+T[\d:.]+$/.test(time) ? `${time}Z` : time
}

/** A number, or the text if it is none, to be refused with the fields; null for no number. */
export function typedNumber(text: string): number | string | null {
  const number = text.trim()
  if (number === '') return null
  return /^\d{1,15}$/.test(number) ? Number(number) : number
}

/** The parts of a text, without the empty ones. */
export function partsOf(text: string, separator: RegExp): readonly string[] {
  const parts = text.split(separator).map((part) => part.trim())
  return parts.filter((part) => part !== '')
}

/** A tag in its normal form: `My Team` and `my_team` are `my-team`. */
export function foldTag(tag: string): string {
  return tag.toLowerCase().replaceAll(/[_ ]/g, '-')
}

function readSlug(given: unknown): string | undefined {
  if (typeof given !== 'string') return undefined
  checkSlug(given)
  return given
}

/** Aliases, each once, sorted. */
function readAliases(given: unknown): string[] | undefined {
  if (!Array.isArray(given) || !given.every((alias) => typeof alias === 'string')) return undefined
  const aliases = [...new Set(given)].toSorted()
  for (const alias of aliases) checkSlug(alias, 'aliases')
  if (aliases.length > MAX_ALIASES) throw tooManyAliases()
  return aliases
}

export function tooManyAliases(): Fault {
  return badRequest(`aliases: ${MAX_ALIASES} at most`, 'aliases')
}

/** Whether a text is a tag once it is in its normal form. */
export function isTag(text: string): boolean {
  const tag = foldTag(text)
  return tag.length <= MAX_TAG && TAG.test(tag)
}

/** Tags in their normal form, each once, sorted. */
function readTags(given: unknown): string[] | undefined {
  if (!Array.isArray(given) || !given.every((tag) => typeof tag === 'string')) return undefined
  const tags = [...new Set(given.map(foldTag))].toSorted()
  if (!tags.every(isTag)) {
    const form = `1 to ${MAX_TAG} of a-z, 0-9 and -, and not begin with -`
    throw linksFault('INVALID_TAG', `tags: each must have ${form}`, 'tags')
  }
  if (tags.length > MAX_TAGS) {
    throw linksFault('TOO_MANY_TAGS', `tags: ${MAX_TAGS} at most`, 'tags')
  }
  return tags
}

/** A text that may be empty. Its length counts as in the database, in characters. */
function textField(maxLength: number) {
  return field(
    withDefault(Type.String({ maxLength }), ''),
    {
      wrong: 'must be a string',
      maxLength: {
        code: 'INVALID_FIELD_LENGTH',
        text: `may have ${maxLength} characters at most`,
      },
    },
    // Neither can be stored: the text would come back as another one.
    [
      (text) => !text.includes('\0') && text.isWellFormed(),
      'must have no NUL and no half of a character',
    ],
    [(text) => !TURNS_TEXT.test(text), 'must have no characters that turn the direction of text'],
  )
}
