import type { Call } from './model-calls.ts'
import { refused } from './model-state.ts'
import type { Answer, Link, Model, User } from './model-state.ts'
import {
  bySlug,
  isMatched,
  loops,
  shown,
  shownShare,
  shownWithTag,
  written,
} from './model-views.ts'

/** Calls that only look. */
export const READS: ReadonlySet<Call['op']> = new Set([
  ...(['links', 'get', 'owners', 'shares', 'tags', 'tagLinks', 'me'] as const),
  ...(['adminUsers', 'adminLinks'] as const),
])

/** What a call about one link is answered: 404 before 403 before 400. */
export function onLink(model: Model, caller: User, call: Call & { link: string }): Answer {
  if (call.op === 'restore') return restore(model, caller, call.link)
  const link = model.links.get(call.link)
  if (link === undefined) return refused('NOT_FOUND')
  const owns = caller.role === 'admin' || link.owners.includes(caller.id)
  const reads = owns || link.shares.some(({ id }) => id === caller.id)
  if (!(READS.has(call.op) ? reads : owns)) return refused('FORBIDDEN')
  const isPrimary = link.owners[0] === caller.id
  if (call.op === 'handOver' && caller.role !== 'admin' && !isPrimary) return refused('FORBIDDEN')
  switch (call.op) {
    case 'get':
      return { status: 200, body: () => shownWithTag(model, link) }
    case 'owners':
      return { status: 200, body: () => shown(model, link).owners }
    case 'shares':
      return { status: 200, body: () => link.shares.map((share) => shownShare(model, share)) }
    case 'delete':
      if (!isMatched(model, link, call.ifMatch)) return refused('PRECONDITION_FAILED')
      model.links.delete(link.id)
      model.deleted.set(link.id, link)
      return { status: 204 }
    case 'put': {
      if (call.wrong !== undefined) return refused(call.wrong.code)
      if (!isMatched(model, link, call.ifMatch)) return refused('PRECONDITION_FAILED')
      if (loops(model, caller, link.slug, call.fields.url)) return refused('INVALID_URL')
      Object.assign(link, written(call.fields, link))
      return {
        status: 200,
        body(made) {
          link.times.updated_at = made.updated_at
          return shownWithTag(model, link)
        },
      }
    }
    case 'addOwner':
    case 'addShare':
    case 'handOver': {
      if (typeof call.email !== 'string') return refused('BAD_REQUEST')
      const email = call.email.toLowerCase()
      const user = [...model.users.values()].find((known) => known.email === email)
      if (user === undefined) return refused('NOT_FOUND')
      if (call.op === 'handOver') return handOver(model, link, user)
      return call.op === 'addOwner' ? addOwner(link, user) : addShare(model, caller, link, user)
    }
    case 'removeOwner':
      if (!link.owners.includes(call.user)) return refused('NOT_FOUND')
      if (link.owners[0] === call.user) return refused('PRIMARY_OWNER_PROTECTED')
      link.owners = link.owners.filter((id) => id !== call.user)
      return { status: 204 }
    case 'removeShare':
      if (!link.shares.some(({ id }) => id === call.user)) return refused('NOT_FOUND')
      link.shares = link.shares.filter(({ id }) => id !== call.user)
      return { status: 204 }
  }
  throw new Error(`the model does not know ${JSON.stringify(call)}`)
}

function restore(model: Model, caller: User, id: string): Answer {
  const link = model.deleted.get(id)
  if (link === undefined) return refused('NOT_FOUND')
  if (caller.role !== 'admin' && !link.owners.includes(caller.id)) return refused('FORBIDDEN')
  if (loops(model, caller, link.slug, link.url)) return refused('INVALID_URL')
  if (bySlug(model, link.slug) !== undefined) return refused('SLUG_CONFLICT')
  model.deleted.delete(id)
  model.links.set(id, link)
  return { status: 200, body: () => shownWithTag(model, link) }
}

function handOver(model: Model, link: Link, { id }: User): Answer {
  link.owners = [id, ...link.owners.filter((owner) => owner !== id)]
  return { status: 200, body: () => shownWithTag(model, link) }
}

function addOwner(link: Link, { id, email }: User): Answer {
  if (link.owners.includes(id)) return refused('DUPLICATE_OWNER')
  link.owners.push(id)
  return { status: 201, body: () => ({ id, email, is_primary: false }) }
}

function addShare(model: Model, caller: User, link: Link, { id }: User): Answer {
  if (link.shares.some((share) => share.id === id)) return refused('DUPLICATE_SHARE')
  return {
    status: 201,
    body({ created_at }) {
      const share = { id, shared_by: caller.email, created_at }
      link.shares.push(share)
      return shownShare(model, share)
    },
  }
}
