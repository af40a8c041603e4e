import type { Route } from '../../../kernel/router.ts'
import type { LinksRoutes } from '../options.ts'
import { linkFormRoutes } from './link-form.ts'
import { linkRoutes } from './link.ts'
import { listRoutes } from './links.ts'

/** The pages of links: lists, the form, and the page of one. */
export function linkPages(options: LinksRoutes): readonly Route[] {
  return [...listRoutes(options), ...linkFormRoutes(options), ...linkRoutes(options)]
}
