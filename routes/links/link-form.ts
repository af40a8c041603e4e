import Type from 'typebox'
import { linkQueries, type Link } from '../../db/links/links.ts'
import type { User } from '../../db/links/users.ts'
import { sentence } from '../../html/form.ts'
import { linkFormView, slugNote, type LinkFormView } from '../../html/links/link-form.ts'
import { html, type Html } from '../../kernel/html.ts'
import { Fault } from '../../kernel/fault.ts'
import { newForm, type Call } from '../../kernel/http/endpoint.ts'
import type { Typed, View } from '../../kernel/http/view.ts'
import { validateTexts, withDefault } from '../../kernel/validate.ts'
import {
  EditForm,
  NewLinkForm,
  readEditForm,
  readNewLinkForm,
  typedSlug,
} from '../../services/links/link-input.ts'
import {
  createLink,
  mayRead,
  plainLink,
  replaceLink,
  versionOf,
} from '../../services/links/links.ts'
import { checkSlug } from '../../services/links/slug.ts'
import { signedIn } from './access.ts'
import { form, Id, page, shortLinks, type LinksRoutes } from './endpoint.ts'
import { changeableLink } from './links.ts'

/** Enough to find what somebody else has just done. */
const STALE_CHANGES = 3

const text = withDefault(Type.String(), '')
const params = { id: Id }

type FormCall = Pick<Call<LinksRoutes, User>, 'app' | 'caller'>
type EditCall = Call<LinksRoutes, User, { id: string }>

/** `/-/new`, `/-/slug` and `/-/links/{id}/edit`: links are created and edited here. */
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

  form({
    path: '/-/new',
    access: signedIn,
    body: NewLinkForm,
    async answer({ app: { links }, caller, body, now }) {
      const { id } = await createLink(links, caller, readNewLinkForm(body), now)
      return { location: `/-/links/${id}` }
    },
    refused: (call, state) => formView(call, { link: null, form: state }),
  }),

  page({
    path: '/-/slug',
    access: signedIn,
    query: Type.Object({ slug: text }),
    async answer({ app, caller, query }) {
      const note = await slugNoteFor(app, typedSlug(query.slug), caller)
      const body = html`<h1>Name of a link</h1>
        ${note}`
      return { page: () => ({ title: 'Name', section: 'new', body }), fragment: () => note }
    },
  }),

  page({
    path: '/-/links/:id/edit',
    access: signedIn,
    params,
    find: changeableLink,
    answer(call) {
      const link = plainLink(call.found)
      const typed = { ...textsOf(link), version: versionOf(link) }
      return formView(call, { link, form: newForm(EditForm, typed) })
    },
  }),

  form({
    path: '/-/links/:id/edit',
    access: signedIn,
    params,
    find: changeableLink,
    body: EditForm,
    async answer({ app: { links }, caller, params: { id }, body, now }) {
      const { version } = body
      const isAsked = (current: string): boolean => current === (version ?? current)
      await replaceLink(links, caller, id, readEditForm(body), now, isAsked)
      return { location: `/-/links/${id}` }
    },
    refused(call, state) {
      if (state.fault.code === 'PRECONDITION_FAILED') return staleView(call, state.typed)
      return formView(call, { link: call.found, form: state })
    },
  }),
]

function formView({ app }: FormCall, state: Omit<LinkFormView, 'short'>): View {
  return linkFormView({ ...state, short: shortLinks(app) })
}

/**
 * The form of a link that somebody else has changed meanwhile. Saved again, it replaces what is
 * stored.
 */
async function staleView(call: EditCall, typed: Typed): Promise<View> {
  const { db } = call.app.links
  const link = plainLink(await changeableLink(call))
  const input = readEditForm(validateTexts(EditForm, (name) => typed[name]))
  const texts = { ...textsOf({ ...link, ...input }), version: versionOf(link) }
  const changes = await linkQueries.listChanges(db, { link: link.id, limit: STALE_CHANGES })
  const stale = { stored: textsOf(link), changes }
  return formView(call, { link, form: newForm(EditForm, texts), stale })
}

/**
 * What is said of a slug while it is typed. If the visitor may not read its link: only that it is
 * taken.
 */
async function slugNoteFor(app: LinksRoutes, slug: string, visitor: User): Promise<Html> {
  if (slug === '') return html``
  try {
    checkSlug(slug)
  } catch (error) {
    if (error instanceof Fault) return slugNote('taken', sentence(error.message))
    throw error
  }
  const name = `${app.shortKeyword()}/${slug}`
  const link = await linkQueries.findLinkBySlug(app.links.db, { slug, user: visitor.id })
  if (link === undefined) return slugNote('free', `${name} is free.`)
  return slugNote('taken', `${name} is taken.`, mayRead(link, visitor) ? link.id : undefined)
}

/** The fields of a link as the texts of its form. */
function textsOf({ url, title, description, tags, visibility, append_path }: Omit<Link, 'slug'>) {
  return {
    url,
    title,
    description,
    tags: tags.join(', '),
    visibility,
    append_path: String(append_path),
  }
}
