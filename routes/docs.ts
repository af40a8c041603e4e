import * as Type from '../kernel/schema.ts'
import { docsSearchView, docView, MAX_SEARCH_TEXT } from '../html/docs.ts'
import { found } from '../kernel/fault.ts'
import type { Access, Endpoint } from '../kernel/http/declaration.ts'
import type { endpointsOf } from '../kernel/http/endpoint.ts'
import { taggedReply, withTag } from '../kernel/http/reply.ts'
import { withDefault } from '../kernel/validate.ts'
import { FIRST_PAGE, readDoc, readPicture, searchDocs } from '../services/docs.ts'

/** The kinds of endpoints of a service that the documentation needs. */
type Kinds<App, Viewer> = Pick<ReturnType<typeof endpointsOf<App, Viewer>>, 'page' | 'raw'>

const Name = { name: Type.String() }
const CACHED = { 'cache-control': 'private, no-cache' }

/** The documentation, below `/-/docs/` on each listener and guarded like the pages there. */
export function docsEndpoints<App, Viewer, C extends Viewer>(
  { page, raw }: Kinds<App, Viewer>,
  access: Access<App, C>,
): readonly Endpoint<App>[] {
  return [
    raw({
      path: '/-/docs',
      access,
      answer: () => ({ status: 308, headers: { location: '/-/docs/' }, body: null }),
    }),
    page({ path: '/-/docs/', access, answer: () => docOf(FIRST_PAGE) }),
    page({
      path: '/-/docs/search',
      access,
      query: Type.Object({ q: withDefault(Type.String(), '') }),
      answer: ({ query: { q } }) => docsSearchView(q, searchDocs(q.slice(0, MAX_SEARCH_TEXT))),
    }),
    page({
      path: '/-/docs/:name',
      access,
      params: Name,
      answer: ({ params: { name } }) => docOf(name),
    }),
    page({
      path: '/-/docs/decisions/:name',
      access,
      params: Name,
      answer: ({ params: { name } }) => docOf(`decisions/${name}`),
    }),
    raw({
      path: '/-/docs/pictures/:name',
      access,
      params: Name,
      answer({ context, params: { name } }) {
        const picture = found(readPicture(name), 'the picture')
        return taggedReply(context, withTag(picture), 'image/png', CACHED)
      },
    }),
  ]
}

async function docOf(name: string) {
  return docView(found(await readDoc(name), 'the page'))
}
