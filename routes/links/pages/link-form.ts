import { findLinkBySlug, listChanges } from '../../../db/links/links.ts'
import type { Link } from '../../../db/links/rows.ts'
import type { User } from '../../../db/links/users.ts'
import {
  EMPTY_FIELDS,
  type LinkFormFields,
  linkForm,
  linkFormPage,
  slugState,
  type LinkFormView,
  type SlugState,
} from '../../../html/links/link-form.ts'
import { queryOf } from '../../../kernel/http/context.ts'
import type { FaultValue } from '../../../kernel/fault.ts'
import { htmlReply, type Reply } from '../../../kernel/http/reply.ts'
import type { Route } from '../../../kernel/http/router.ts'
import {
  linkFor,
  plainLink,
  createLink,
  replaceLink,
  versionOf,
} from '../../../services/links/links.ts'
import { sentence } from '../../page-answers.ts'
import type { LinkInput } from '../../../services/links/link-input.ts'
import { readLinkForm, readNewLink, typedSlug } from './read-link-form.ts'
import { STATUS } from '../../../services/links/faults.ts'
import { isRefusal, type Refusal } from '../../../services/links/refusal.ts'
import { refuseSlug } from '../../../services/links/slug.ts'
import { readForm } from '../../form.ts'
import { shortLinks, type LinksRoutes } from '../options.ts'
import { fragmentOrPage, goTo, pageRoute, type PageCall } from './page.ts'

/** Enough to find what somebody else has just done. */
const CHANGES_SHOWN = 3

/** `/-/new`, `/-/slug` and `/-/links/{id}/edit`: links are made and edited here. */
export function linkFormRoutes(options: LinksRoutes): readonly Route[] {
  const { links } = options
  const { db } = links

  /** The answer to a post that was not carried out: the form with what was typed. */
  function answerForm(
    { context, visitor }: PageCall,
    view: Omit<LinkFormView, 'short'>,
    status: number,
  ): Reply {
    const shown = { ...view, short: shortLinks(options) }
    return fragmentOrPage(
      context,
      () => linkFormPage(visitor, shown),
      () => linkForm(shown),
      status,
    )
  }

  /** The form again, with what was typed and what is wrong with it. */
  function again(
    call: PageCall,
    view: Pick<LinkFormView, 'id' | 'version' | 'fields'>,
    refusals: readonly Refusal[],
  ): Reply {
    const status = Math.max(...refusals.map(({ refused }) => STATUS[refused]))
    return answerForm(call, { ...view, stale: null, problems: problemsOf(refusals) }, status)
  }

  /** The form of a link that somebody else has changed meanwhile; it can be saved again. */
  async function againStale(call: PageCall, input: LinkInput): Promise<Reply | Refusal> {
    const link = await linkFor(db, call.param('id'), call.visitor, 'change')
    if (isRefusal(link)) return link
    const { visibility = link.visibility, append_path = link.append_path } = input
    const changes = await listChanges(db, link.id, CHANGES_SHOWN)
    const view = {
      id: link.id,
      version: versionOf(plainLink(link)),
      fields: stored({ ...link, ...input, visibility, append_path }),
      stale: { stored: stored(link), changes },
      problems: {},
    }
    return answerForm(call, view, STATUS.PRECONDITION_FAILED)
  }

  function fresh({ context, visitor }: PageCall): Reply {
    const query = queryOf(context)
    const [url, title] = [query.get('url') ?? '', query.get('title') ?? '']
    const fields = { ...EMPTY_FIELDS, slug: typedSlug(query), url, title }
    const short = shortLinks(options)
    const view = { id: null, version: null, fields, stale: null, problems: {}, short }
    return htmlReply(linkFormPage(visitor, view))
  }

  async function create(call: PageCall): Promise<Reply | FaultValue> {
    const { context, visitor } = call
    const form = await readForm(context)
    if ('status' in form) return form
    const view = { id: null, version: null, fields: typed(form) }
    const wanted = readNewLink(form)
    if (!('input' in wanted)) return again(call, view, wanted)
    const { slug, input } = wanted
    const made = await createLink(links, visitor, slug, input, context.receivedAt)
    if (isRefusal(made)) return again(call, view, [made])
    return goTo(context, `/-/links/${made.id}`)
  }

  async function edit({ visitor, param }: PageCall): Promise<Reply | Refusal> {
    const link = await linkFor(db, param('id'), visitor, 'change')
    if (isRefusal(link)) return link
    const version = versionOf(plainLink(link))
    const [fields, short] = [stored(link), shortLinks(options)]
    const view = { id: link.id, version, fields, stale: null, problems: {}, short }
    return htmlReply(linkFormPage(visitor, view))
  }

  async function save(call: PageCall): Promise<Reply | Refusal | FaultValue> {
    const { context, visitor, param } = call
    const link = await linkFor(db, param('id'), visitor, 'change')
    if (isRefusal(link)) return link
    const form = await readForm(context)
    if ('status' in form) return form
    // A program may leave it out.
    const version = form.get('version')
    const view = { id: link.id, version, fields: { ...typed(form), slug: link.slug } }
    const input = readLinkForm(form)
    if (isRefusal(input)) return again(call, view, [input])
    const unchanged = (now: string): boolean => version === null || version === now
    const at = context.receivedAt
    const saved = await replaceLink(links, visitor, link.id, input, at, unchanged)
    if (!isRefusal(saved)) return goTo(context, `/-/links/${link.id}`)
    if (saved.refused === 'PRECONDITION_FAILED') return againStale(call, input)
    return ['NOT_FOUND', 'FORBIDDEN'].includes(saved.refused) ? saved : again(call, view, [saved])
  }

  async function check({ context, visitor }: PageCall): Promise<Reply> {
    const slug = typedSlug(queryOf(context))
    const state = await stateOf(slug, visitor)
    return htmlReply(slugState(shortLinks(options), slug, state))
  }

  /** Of a link that the visitor may not read, no more is told than that its slug is taken. */
  async function stateOf(slug: string, visitor: User): Promise<SlugState> {
    if (slug === '') return { kind: 'empty' }
    const refusal = refuseSlug(slug)
    if (refusal !== undefined) return { kind: 'refused', message: sentence(refusal.message) }
    const link = await findLinkBySlug(db, slug, visitor.id)
    if (link === undefined) return { kind: 'free' }
    const mayRead = visitor.role === 'admin' || link.is_owner || link.is_recipient
    return { kind: 'taken', id: mayRead ? link.id : null }
  }

  const one = '/-/links/:id/edit'
  return [
    pageRoute(options, { method: 'GET', path: '/-/new', answer: async (call) => fresh(call) }),
    pageRoute(options, { method: 'POST', path: '/-/new', answer: create }),
    pageRoute(options, { method: 'GET', path: '/-/slug', answer: check }),
    pageRoute(options, { method: 'GET', path: one, answer: edit }),
    pageRoute(options, { method: 'POST', path: one, answer: save }),
  ]
}

/** What a refused form held. */
function typed(form: URLSearchParams): LinkFormFields {
  const text = (name: string): string => form.get(name) ?? ''
  return {
    slug: text('slug'),
    url: text('url'),
    title: text('title'),
    description: text('description'),
    tags: text('tags'),
    visibility: form.get('visibility') ?? EMPTY_FIELDS.visibility,
    append_path: form.get('append_path') === 'true',
  }
}

function stored({ slug, url, title, description, tags, visibility, append_path }: Link) {
  return { slug, url, title, description, tags: tags.join(', '), visibility, append_path }
}

function problemsOf(refusals: readonly Refusal[]): Readonly<Record<string, string>> {
  return Object.fromEntries(refusals.map(({ field = '', message }) => [field, sentence(message)]))
}
