import { randomBytes } from 'node:crypto'
import { databaseAnswers } from '../../../db/server.ts'
import { get, head } from '../../../kernel/net/outbound.ts'
import { faultReply, NOT_FOUND } from '../../../routes/links/faults.ts'
import type { LinksRoutes } from '../../../routes/links/kit.ts'
import { linksRoutes, linksFallback } from '../../../routes/links/routes.ts'
import { openLinks } from '../../../services/links/open.ts'
import { createLinkTools } from '../../../services/links/transfer/tools.ts'
import {
  hostsOfLinks,
  linkSchemes,
  runningServices,
  serviceUrl,
  shortKeyword,
  snapshotPlace,
  takesGroups,
} from '../../frame/configuration.ts'
import type { OpenService } from '../listeners.ts'

/** The links service, made from the configuration. */
export const openService: OpenService = async (context) => {
  const { db, config, version, addresses } = context
  const baseUrl = () => serviceUrl('links', config, addresses) ?? ''
  const ownHosts = hostsOfLinks(config, addresses)
  const links = await openLinks({
    ...context,
    random: randomBytes,
    ownHosts,
    schemes: () => linkSchemes(config),
    head,
    get,
    checkInterval: config.current.LINKS_CHECK,
    hosts: () => config.current.LINKS_CHECK_HOSTS,
    stats: () => config.current.LINKS_STATS,
    snapshot: snapshotPlace(config),
    takesGroups: () => takesGroups(config),
  })
  const keyword = () => shortKeyword(config, addresses)
  const short = () => ({ keyword: keyword(), base: baseUrl() })
  const app: LinksRoutes = {
    links,
    version,
    services: () => runningServices(config, addresses),
    baseUrl,
    shortKeyword: keyword,
    toolServerOf: createLinkTools({ links, short, version }),
  }
  return {
    name: 'links',
    routes: linksRoutes(app, () => databaseAnswers(db)),
    fallback: linksFallback(app),
    faultReply: (fault, request) => faultReply(app, fault, request, null),
    noRoute: NOT_FOUND,
    forgetLink: (slug) => links.forget(slug),
    restore: () => links.restore(),
    prepare: () => links.prepare(),
    begin: () => links.begin(),
    close: () => links.close(),
  }
}
