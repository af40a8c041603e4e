import * as Type from '../../../kernel/schema.ts'
import { many, one, sqlFile } from '../../sql-file.ts'
import { Link, type Owner } from '../names/links.ts'

/** A link with the e-mail addresses of the users it is shared with. */
export const ExportedLink = Type.Object({
  ...Link.properties,
  shared_with: Type.Array(Type.String()),
})
export type ExportedLink = Type.Static<typeof ExportedLink>

/** A link to import, with the ids of its owners and recipients. */
export interface NewLink extends Omit<Link, 'id' | 'owners'> {
  owners: readonly Pick<Owner, 'id' | 'is_primary'>[]
  recipients: readonly string[]
}

export const transferQueries = sqlFile('sql/links/transfer/transfer.sql', {
  findLinksBySlugs: many(Link, { slugs: 'jsonb', limit: 'int8' }),
  addImportedLinks: many(Type.Pick(Link, ['slug']), {
    links: 'jsonb',
    actor: 'text',
    at: 'timestamptz',
    limit: 'int8',
  }),
  addImportedAliases: many(Type.Object({ slug: Type.String(), alias: Type.String() }), {
    links: 'jsonb',
    limit: 'int8',
  }),
  countHiddenLinks: one(Type.Object({ links: Type.Integer() }), {}),
  listLinksToExport: many(ExportedLink, { after: 'text', public_only: 'bool', limit: 'int8' }),
})
