import { preconditionOf } from '../../../kernel/http/headers.ts'
import { renameLink } from '../../../services/links/names/aliases/rename.ts'
import {
  NewSlug,
  NewSlugForm,
  readNewSlugForm,
} from '../../../services/links/names/links/input.ts'
import { signedIn, token } from '../access.ts'
import { action, Id } from '../kit.ts'
import { changeableLink, changeHeaders, linkReply } from './links/links.ts'
import { linkView } from '../link.ts'

/** `/links/{id}/slug`, and its form on the page of a link. Aliases are a field of the link. */
export const aliasEndpoints = action({
  params: { id: Id },
  find: changeableLink,
  body: NewSlug,
  act: ({ app: { links }, caller, params: { id }, body: { slug }, now, context }) =>
    renameLink(links, caller, { id, slug }, now, preconditionOf(context.headers)),
  api: {
    method: 'PUT',
    path: '/api/v1/links/:id/slug',
    access: token('full'),
    id: 'renameLink',
    tag: 'Links',
    summary: 'Rename a link; its former slug leads on, as an alias.',
    headers: changeHeaders,
    returns: linkReply('The link as it is now'),
    refuses: [409, 412],
  },
  form: {
    path: '/-/links/:id/slug',
    access: signedIn,
    body: NewSlugForm,
    toBody: ({ body }) => readNewSlugForm(body),
    answer: (_call, { id, slug }) => ({ location: `/-/links/${id}`, done: ['renamed', slug] }),
    refused: (call, state) => linkView(call, call.found, { forms: { slug: state } }),
  },
})
