import * as Type from '../../../../kernel/schema.ts'
import { taggedReply, withTag } from '../../../../kernel/http/reply.ts'
import { linkBySlug } from '../../../../services/links/names/links/links.ts'
import { qrPng, qrSvg } from '../../../../services/links/names/links/qr.ts'
import { signedIn } from '../../access.ts'
import { raw } from '../../kit.ts'

const PICTURES = [
  { name: 'qr.svg', type: 'image/svg+xml', draw: qrSvg },
  { name: 'qr.png', type: 'image/png', draw: qrPng },
]

/** A link may be handed over or deleted: a browser asks again before it shows a stored picture. */
const CACHED = { 'cache-control': 'private, no-cache' }

/**
 * The short address of a link as a QR code. By slug, so that people can write the path themselves.
 * Who may not read the link gets the 404 of a slug that no link has.
 */
export const qrEndpoints = PICTURES.map(({ name, type, draw }) =>
  raw({
    path: `/-/links/:slug/${name}`,
    access: signedIn,
    params: { slug: Type.String() },
    find: ({ app, caller, params }) => linkBySlug(app.links.db, params.slug, caller),
    answer({ app, found, context }) {
      const picture = draw(`${app.baseUrl()}/${found.slug}`)
      return taggedReply(context, withTag(picture), type, CACHED)
    },
  }),
)
