import type { Bearer, Scope } from '../../db/links/people/tokens.ts'
import { Fault, forbidden } from '../../kernel/fault.ts'
import type { Access } from '../../kernel/http/declaration.ts'
import { bearerToken } from '../../kernel/tokens.ts'
import { noteUse } from '../../services/links/people/tokens/tokens.ts'
import { withoutGroups, type Caller } from '../../services/links/people/users/groups.ts'
import { accountOf } from '../../services/links/people/users/users.ts'
import type { LinksRoutes } from './kit.ts'

/** Anybody, without a token: nobody asks who calls. */
export const anybody: Access<LinksRoutes, null> = {
  guard: 'open',
  needsToken: false,
  identify: () => null,
}

/** Anybody who may open the pages, signed in or not. */
export const guest: Access<LinksRoutes, null> = { ...anybody, guard: 'guarded' }

/** People who are signed in at a browser. */
export const signedIn: Access<LinksRoutes, Caller> = {
  guard: 'private',
  needsToken: false,
  async identify({ links }, { actor, receivedAt }) {
    const user = await accountOf(links.db, actor, receivedAt)
    if (user?.disabled_at === null) return user
    if (user !== undefined) throw forbidden('your account is disabled; ask an admin to enable it')
    throw forbidden('you are not signed in: come through the address where you sign in')
  },
}

/**
 * The user whose token, of one of these scopes, a request carries; 401 without a valid token. The
 * use is recorded. No proxy names groups for a token: a remembered one would outlive the
 * membership.
 */
export function token(...scopes: readonly Scope[]): Access<LinksRoutes, Bearer & Caller> {
  return {
    guard: 'open',
    needsToken: true,
    async identify({ links: { db, log, findBearer } }, context) {
      const { headers, receivedAt } = context
      const text = bearerToken(headers)
      const bearer = text === undefined ? undefined : await findBearer(text, receivedAt)
      if (bearer === undefined) {
        const challenge = { 'www-authenticate': 'Bearer' }
        throw new Fault(401, 'UNAUTHORIZED', 'unauthorized', { headers: challenge })
      }
      context.actor = { kind: 'token', name: `${bearer.token_name} of ${bearer.email}` }
      noteUse(db, log, bearer, receivedAt)
      return withoutGroups(bearer)
    },
    allow({ scope }) {
      if (!scopes.includes(scope)) {
        throw forbidden(`this token has scope ${scope}, which does not reach here`)
      }
    },
  }
}

/** As the given access, for admins only. */
export function admin<C extends Caller>(access: Access<LinksRoutes, C>): Access<LinksRoutes, C> {
  return {
    ...access,
    allow(caller) {
      access.allow?.(caller)
      if (caller.role !== 'admin') throw forbidden('only admins may do this')
    },
  }
}
