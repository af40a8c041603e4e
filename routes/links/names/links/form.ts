import * as Type from '../../../../kernel/schema.ts'
import { historyQueries } from '../../../../db/links/names/history.ts'
import { linkQueries, type LinkAccess } from '../../../../db/links/names/links.ts'
import { sentence } from '../../../../html/form.ts'
import {
  linkFormView,
  slugNote,
  type LinkFormView,
  type SlugNote,
} from '../../../../html/links/names/links/form.ts'
import { textsOf } from '../../../../html/links/names/history.ts'
import { partView } from '../../../../html/links/layout.ts'
import { exampleFields, type TypedExample } from '../../../../html/links/names/links/places.ts'
import { html } from '../../../../kernel/html.ts'
import { Fault } from '../../../../kernel/fault.ts'
import { queryOf } from '../../../../kernel/http/context.ts'
import type { Call } from '../../../../kernel/http/declaration.ts'
import { newForm, audienceOf, type Typed, type View } from '../../../../kernel/http/view.ts'
import { validateTexts, withDefault } from '../../../../kernel/validate.ts'
import { tagCompletions } from '../../../../services/links/names/links/completions.ts'
import { linksFault } from '../../../../services/links/faults.ts'
import {
  EditForm,
  LinkRequest,
  NewLinkForm,
  readEditForm,
  slugMissing,
  typedSlug,
} from '../../../../services/links/names/links/input.ts'
import {
  createLink,
  mayRead,
  plainLink,
  replaceLink,
  versionOf,
} from '../../../../services/links/names/links/links.ts'
import { namesakesOf } from '../../../../services/links/names/aliases/names.ts'
import { refusePastExpiry } from '../../../../services/links/names/links/lifecycle.ts'
import { createGenerated } from '../../../../services/links/names/links/generate.ts'
import { freeSlugNear, readNewLink } from '../../../../services/links/names/links/new.ts'
import { foreignPlaceIn } from '../../../../services/links/names/links/foreign-places.ts'
import { exampleOf, type TypedPlace } from '../../../../services/links/names/links/places.ts'
import { nameTyped } from '../../../../services/links/names/links/short-address.ts'
import { checkSlug } from '../../../../services/links/names/links/slug.ts'
import { completeUrl, isTarget } from '../../../../services/links/names/links/target.ts'
import { NO_FILTER } from '../../../../services/links/names/lists/filter.ts'
import { searchLinks } from '../../../../services/links/names/lists/lists.ts'
import { signedIn, token } from '../../access.ts'
import { action, form, Id, page, shortLinks, type LinksRoutes } from '../../kit.ts'
import { changeableLink, linkReply, shownVersion } from './links.ts'
import type { Caller } from '../../../../services/links/people/users/groups.ts'

/** Enough to find what somebody else has just done. */
const STALE_CHANGES = 3
/** Links to the same address that the form names. */
const MAX_EXISTING = 5

const text = withDefault(Type.String(), '')
const params = { id: Id }

type FormCall = Pick<Call<LinksRoutes, Caller>, 'app' | 'caller' | 'now'>
type LinkCall = Call<LinksRoutes, Caller, { id: string }>
type EditCall = Call<LinksRoutes, Caller, { id: string }, unknown, LinkAccess | undefined>

/** Creating a link, and the forms in which people create and edit links. */
export const linkFormEndpoints = [
  page({
    path: '/-/new',
    access: signedIn,
    query: Type.Object({ slug: text, url: text, title: text }),
    answer(call) {
      const { slug, url, title } = call.query
      const typed = { slug: typedSlug(slug), url, title, visibility: 'public' }
      return formView(call, { link: null, form: newForm(NewLinkForm, typed) })
    },
  }),

  ...action({
    query: Type.Object({ generate: withDefault(Type.Boolean(), false) }),
    body: LinkRequest,
    async act({ app: { links }, caller, query: { generate }, body, now }) {
      refusePastExpiry(body, now)
      const { slug } = body
      if (slug !== undefined) return createLink(links, caller, { ...body, slug }, now)
      if (!generate) throw slugMissing()
      return createGenerated(links, caller, body, now)
    },
    api: {
      method: 'POST',
      path: '/api/v1/links',
      access: token('full', 'create'),
      id: 'createLink',
      tag: 'Links',
      summary: 'Create a link; the caller becomes its primary owner.',
      returns: { status: 201, ...linkReply('The new link') },
      refuses: [409, 500],
    },
    form: {
      path: '/-/new',
      access: signedIn,
      body: NewLinkForm,
      toBody({ app, body }) {
        const slug = nameTyped(body.slug, shortLinks(app))
        return readNewLink(app.links.db, { ...body, slug })
      },
      // The page of the link says more than that it was created.
      answer: (_call, { id }) => ({ location: `/-/links/${id}?created=true` }),
      refused: (call, state) => formView(call, { link: null, form: state }),
    },
  }),

  page({
    path: '/-/slug',
    access: signedIn,
    query: Type.Object({ slug: text }),
    async answer({ app, caller, query }) {
      const note = await slugNoteFor(app, nameTyped(query.slug, shortLinks(app)), caller)
      return partView('Name of a link', note === undefined ? html`` : slugNote(note))
    },
  }),

  page({
    path: '/-/example',
    access: signedIn,
    query: Type.Object({ slug: text, url: text, append_path: text }),
    async answer(call) {
      const { app, query, context } = call
      const sent = queryOf(context)
      const example = await typedExample(call, query, (name) => sent.get(name))
      return partView('Example', exampleFields(shortLinks(app), example))
    },
  }),

  page({
    path: '/-/links/:id/edit',
    access: signedIn,
    params,
    find: changeableLink,
    answer(call) {
      const link = plainLink(call.found)
      const typed = { ...textsOf(link), version: versionOf(link), slug: link.slug }
      return formView(call, { link, form: newForm(EditForm, typed) })
    },
  }),

  form({
    path: '/-/links/:id/edit',
    access: signedIn,
    params,
    find: linkOrNothing,
    body: EditForm,
    async answer({ app: { links }, caller, params: { id }, found, body, now }) {
      if (found === undefined) throw linkGone()
      const input = readEditForm(body)
      refusePastExpiry(input, now, found)
      await replaceLink(links, caller, id, input, now, shownVersion(body.version))
      return { location: `/-/links/${id}`, done: ['saved'] }
    },
    refused(call, state) {
      if (call.found === undefined) {
        // What was typed may become a new link.
        const again = newForm(NewLinkForm, state.typed)
        return formView(call, { link: null, form: again, isGone: true })
      }
      if (state.fault.code === 'PRECONDITION_FAILED') return staleView(call, state.typed)
      return formView(call, { link: call.found, form: state })
    },
  }),
]

/** The form, with what completes it. */
async function formView(
  call: FormCall,
  state: Pick<LinkFormView, 'link' | 'form' | 'stale' | 'isGone'>,
): Promise<View> {
  const { app, caller } = call
  const { db } = app.links
  const { typed = {}, fault } = state.form
  const slug = state.link?.slug ?? nameTyped(typed['slug'] ?? '', shortLinks(app))
  const isRefused = Object.hasOwn(fault?.fields ?? {}, 'slug')
  const target = { url: '', append_path: '', ...typed, slug }
  const [tags, freeSlug, example] = await Promise.all([
    tagCompletions(db, caller, typed['tags'] ?? ''),
    isRefused ? freeSlugNear(db, slug) : undefined,
    typedExample(call, target, (name) => typed[name]),
  ])
  const more = { short: shortLinks(app), tags, freeSlug, typedExample: example }
  return linkFormView({ ...state, ...more })
}

/** What the form shows of an address while it is typed. */
async function typedExample(
  { app, caller, now }: FormCall,
  { slug, url, append_path }: Readonly<Record<'slug' | 'url' | 'append_path', string>>,
  typed: TypedPlace,
): Promise<TypedExample> {
  const whole = completeUrl(url)
  if (!isTarget(whole)) return { existing: [], foreign: foreignPlaceIn(whole) }
  const tools = { db: app.links.db, short: shortLinks(app), now }
  const search = { filter: { ...NO_FILTER, url: whole }, visitor: caller, among: 'all' } as const
  const { links } = await searchLinks(tools, search, undefined, MAX_EXISTING + 1)
  const existing = links
    .filter((other) => other.slug !== typedSlug(slug))
    .slice(0, MAX_EXISTING)
    .map((other) => ({ ...other, mayRead: mayRead(other, caller) }))
  const link = { slug: typedSlug(slug) || 'name', url: whole, append_path: append_path === 'true' }
  const completed = whole === url.trim() ? undefined : whole
  return { completed, existing, example: exampleOf(link, typed) }
}

/**
 * The link that a form changes. People whose link is gone get the form again, so that nothing that
 * they typed is lost.
 */
async function linkOrNothing(call: LinkCall): Promise<LinkAccess | undefined> {
  try {
    return await changeableLink(call)
  } catch (error) {
    const isGone = error instanceof Fault && error.status === 404
    if (isGone && audienceOf(call.context) !== 'program') return undefined
    throw error
  }
}

function linkGone(): Fault {
  const message = 'somebody has deleted this link since you opened this form; nothing was saved'
  return linksFault('NOT_FOUND', message, '')
}

/**
 * The form of a link that somebody else has changed meanwhile. Saved again, it replaces what is
 * stored.
 */
async function staleView(call: EditCall, typed: Typed): Promise<View> {
  const { db } = call.app.links
  const link = plainLink(await changeableLink(call))
  const input = readEditForm(validateTexts(EditForm, (name) => typed[name]))
  const { slug } = link
  const texts = { ...textsOf({ ...link, ...input }), slug, version: versionOf(link) }
  const slice = { before: Number.MAX_SAFE_INTEGER, limit: STALE_CHANGES }
  const changes = await historyQueries.listChanges(db, { link: link.id, ...slice })
  const stale = { stored: textsOf(link), changes }
  return formView(call, { link, form: newForm(EditForm, texts), stale })
}

/**
 * What is said of a slug while it is typed. If the visitor may not read its link: only that it is
 * taken.
 */
async function slugNoteFor(
  app: LinksRoutes,
  slug: string,
  visitor: Caller,
): Promise<SlugNote | undefined> {
  if (slug === '') return undefined
  const { db } = app.links
  try {
    checkSlug(slug)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { isFree: false, text: sentence(error.message), free: await freeSlugNear(db, slug) }
  }
  const { shown } = shortLinks(app)
  const name = `${shown}/${slug}`
  const link = await linkQueries.findLinkBySlug(db, { slug, users: visitor.ids })
  if (link === undefined) {
    const [namesake] = await namesakesOf(db, slug, visitor)
    const note = namesake && ` ${shown}/${namesake.slug} exists, too.`
    return { isFree: true, text: `${name} is free.${note ?? ''}` }
  }
  const readable = mayRead(link, visitor) ? link.id : undefined
  const free = await freeSlugNear(db, slug)
  return { isFree: false, text: `${name} is taken.`, link: readable, free }
}
