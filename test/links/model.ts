import type { Call } from './model-calls.ts'
import { onLink, READS } from './model-links.ts'
import { refused } from './model-state.ts'
import type { Answer, Model, User } from './model-state.ts'
import { bySlug, loops, shown, shownToken, shownWithTag, written } from './model-views.ts'

// The links service as its contracts describe it (links.md; decisions.md section 4), in plain maps. It
// was written from them and not from the code: what the two disagree about is a defect of one of them.

const UUID = /^[0-9a-f-]{36}$/

/** What a call with a token is answered; the model is then as the service must be. */
export function answer(model: Model, bearer: string | undefined, call: Call): Answer {
  if (call.op === 'visit') {
    const link = bySlug(model, call.slug)
    if (link?.archived === true) return { status: 410, location: undefined }
    return { status: link === undefined ? 404 : 302, location: link?.url }
  }
  const token = bearer === undefined ? undefined : model.tokens.get(bearer)
  const caller = token === undefined ? undefined : model.users.get(token.user)
  if (token === undefined || caller === undefined) return refused('UNAUTHORIZED')
  const within =
    token.scope === 'full' ||
    (token.scope === 'read' && READS.has(call.op)) ||
    (token.scope === 'create' && ['create', 'me'].includes(call.op))
  const needsAdmin = ['adminUsers', 'adminLinks', 'role'].includes(call.op)
  if (!within || (needsAdmin && caller.role !== 'admin')) return refused('FORBIDDEN')
  const ids = ['link', 'user', 'token'].flatMap((name) =>
    Object.entries(call).filter(([key]) => key === name),
  )
  if (ids.some(([, id]) => typeof id === 'string' && !UUID.test(id))) return refused('BAD_REQUEST')
  return 'link' in call ? onLink(model, caller, call) : onRest(model, caller, call)
}

function onRest(model: Model, caller: User, call: Call): Answer {
  const all = [...model.links.values()].sort((a, b) => (a.slug < b.slug ? -1 : 1))
  const isAdmin = caller.role === 'admin'
  const visible = all.filter(
    ({ visibility, owners, shares }) =>
      isAdmin ||
      visibility === 'public' ||
      owners.includes(caller.id) ||
      shares.some(({ id }) => id === caller.id),
  )
  const list = (name: string, rows: readonly unknown[]): Answer => ({
    status: 200,
    list: name,
    rows,
  })
  switch (call.op) {
    case 'me':
      return { status: 200, body: () => caller }
    case 'links':
    case 'adminLinks': {
      const mine = all.filter(({ owners }) => isAdmin || owners.includes(caller.id))
      return list(
        'links',
        mine.map((link) => shown(model, link)),
      )
    }
    case 'adminUsers':
      return list(
        'users',
        [...model.users.values()].sort((a, b) => (a.email < b.email ? -1 : 1)),
      )
    case 'tags': {
      const slugs = [...new Set(visible.flatMap(({ tags }) => tags))].sort()
      const count = (tag: string): number =>
        visible.filter(({ tags }) => tags.includes(tag)).length
      return list(
        'tags',
        slugs.map((slug) => ({ slug, link_count: count(slug) })),
      )
    }
    case 'tagLinks': {
      const tagged = visible.filter(({ tags }) => tags.includes(call.tag))
      if (tagged.length === 0) return refused('NOT_FOUND')
      return list(
        'links',
        tagged.map((link) => shown(model, link)),
      )
    }
    case 'create': {
      const { slug, ...fields } = call.fields
      if (call.wrong !== undefined) return refused(call.wrong.code)
      if (loops(model, caller, slug, fields.url)) return refused('INVALID_URL')
      if (bySlug(model, slug) !== undefined) return refused('SLUG_CONFLICT')
      return {
        status: 201,
        body({ id, created_at }) {
          const times = { created_at, updated_at: created_at }
          const link = {
            ...written(fields),
            id,
            slug,
            owners: [caller.id],
            shares: [],
            times,
            seen: '',
          }
          model.links.set(id, link)
          return shownWithTag(model, link)
        },
      }
    }
    case 'role': {
      if (call.role !== 'user' && call.role !== 'admin') return refused('INVALID_ROLE')
      const user = model.users.get(call.user)
      if (user === undefined) return refused('NOT_FOUND')
      if (call.role === 'user' && isLastAdmin(model, user)) return refused('LAST_ADMIN')
      user.role = call.role
      return { status: 200, body: () => user }
    }
    case 'tokens': {
      const mine = [...model.tokens.values()].filter(({ user }) => user === caller.id)
      return { status: 200, body: () => ({ tokens: mine.map(shownToken) }) }
    }
    case 'makeToken':
      return call.wrong === undefined
        ? makeToken(model, caller, call.body)
        : refused(call.wrong.code)
    case 'revoke': {
      const found = [...model.tokens].find(([, { id }]) => id === call.token)
      if (found === undefined || found[1].user !== caller.id) return refused('NOT_FOUND')
      model.tokens.delete(found[0])
      return { status: 204 }
    }
  }
  throw new Error(`the model does not know ${JSON.stringify(call)}`)
}

/** The local operator counts for nothing. */
function isLastAdmin(model: Model, { id, role }: User): boolean {
  const others = [...model.users.values()].filter(
    (user) => user.id !== id && user.role === 'admin' && user.email !== 'operator@localhost',
  )
  return role === 'admin' && others.length === 0
}

function makeToken(
  model: Model,
  { id: user }: User,
  body: { name: string; scope?: string },
): Answer {
  return {
    status: 201,
    body({ id, created_at, expires_at, token }) {
      const times = { created_at, expires_at }
      const made = { id, user, name: body.name, scope: body.scope ?? 'full', times }
      model.tokens.set(token, made)
      return { ...shownToken(made), token }
    },
  }
}
