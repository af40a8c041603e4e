import type { Row } from './rows.ts'

/** What a column says of a link. */
export type Meaning =
  | 'slug'
  /** A short address such as `https://bit.ly/name`. */
  | 'address'
  | 'domain'
  /** Nothing in it: the domain is the default one. */
  | 'own domain'
  | 'url'
  | 'title'
  | 'description'
  | 'tags'
  | 'owner'
  | 'co_owners'
  | 'shared_with'
  | 'aliases'
  | 'visibility'
  /** True: only who knows the name finds it. */
  | 'unlisted'
  /** True: only its owner may follow it. */
  | 'closed'
  | 'append_path'
  | 'begins_at'
  | 'expires_at'
  | 'max_visits'
  | 'visits'
  | 'archived'
  | 'password'
  | 'created_at'
  | 'updated_at'

/**
 * What becomes of a column: a field here; nothing, and why (`left`); or nothing, which the report
 * says at each link that has a value there, or has `false` there (`told`).
 */
export type Column = Meaning | { left: string } | { told: string; when?: 'false' }

/** A program that links come from. */
export interface Source {
  name: string
  /** A file is of the first program all of whose marks are columns of it. */
  marks: readonly string[]
  /** Of columns with one meaning, the first that has something counts. */
  columns: Readonly<Record<string, Column>>
  /** How it writes the places of an address that a visit fills; `text`: it has none. */
  places: 'here' | 'golink' | '%s' | '{*}' | 'text'
}

const VISITS = { left: 'visits that were counted there stay there' }
const LAST_VISIT = { left: 'the last visit there' }
const IDS = { left: 'an id of its own' }
const MADE = { left: 'made of other columns' }
const VIEW = { left: 'how it is shown there' }
const AUTHOR = { left: 'a name there, not an e-mail address' }
const DEVICES = { told: 'without its addresses for devices or countries' }

/** Our own CSV. Other columns are refused: a misspelt `visibility` would open a link to everybody. */
export const GATEHOUSE: Source = {
  name: 'Gatehouse',
  marks: [],
  places: 'here',
  columns: {
    slug: 'slug',
    url: 'url',
    title: 'title',
    description: 'description',
    tags: 'tags',
    owner: 'owner',
    visibility: 'visibility',
    append_path: 'append_path',
    expires_at: 'expires_at',
    max_visits: 'max_visits',
    archived: 'archived',
    created_at: 'created_at',
    updated_at: 'updated_at',
    co_owners: 'co_owners',
    shared_with: 'shared_with',
    aliases: 'aliases',
  },
}

/** Programs that links come from, by what their documents and sources say in 2026. */
export const SOURCES: readonly Source[] = [
  {
    name: 'golink',
    marks: ['Short', 'Long'],
    places: 'golink',
    columns: {
      Short: 'slug',
      Long: 'url',
      Created: 'created_at',
      LastEdit: 'updated_at',
      Owner: 'owner',
    },
  },
  {
    name: 'YOURLS',
    marks: ['keyword', 'url'],
    places: 'text',
    columns: {
      keyword: 'slug',
      url: 'url',
      title: 'title',
      timestamp: 'created_at',
      ip: { left: 'addresses of people are not kept' },
      clicks: VISITS,
    },
  },
  {
    name: 'YOURLS (Import Export)',
    marks: ['source', 'target', 'hits'],
    places: 'text',
    columns: { source: 'address', target: 'url', hits: VISITS },
  },
  {
    name: 'Dub',
    marks: ['Short link', 'Destination URL'],
    places: 'text',
    columns: {
      'Short link': 'address',
      'Destination URL': 'url',
      Title: 'title',
      Description: 'description',
      Tags: 'tags',
      Archived: 'archived',
      'Created at': 'created_at',
      'Updated at': 'updated_at',
      Clicks: VISITS,
      Leads: VISITS,
      Sales: VISITS,
    },
  },
  {
    name: 'Dub (API)',
    marks: ['key', 'url', 'shortLink'],
    places: 'text',
    columns: {
      key: 'slug',
      domain: 'domain',
      url: 'url',
      title: 'title',
      comments: 'description',
      description: 'description',
      tags: 'tags',
      archived: 'archived',
      expiresAt: 'expires_at',
      password: 'password',
      createdAt: 'created_at',
      updatedAt: 'updated_at',
      expiredUrl: { told: 'without its address for later' },
      ios: DEVICES,
      android: DEVICES,
      geo: DEVICES,
      rewrite: { told: 'shows its own address, which it did not' },
      id: IDS,
      shortLink: MADE,
      qrCode: MADE,
      clicks: VISITS,
      leads: VISITS,
      sales: VISITS,
      saleAmount: VISITS,
      lastClicked: LAST_VISIT,
      userId: AUTHOR,
    },
  },
  {
    name: 'Bitly',
    marks: ['Link', 'Destination URL'],
    places: 'text',
    columns: {
      'Custom Link': 'address',
      Link: 'address',
      'Date created': 'created_at',
      Title: 'title',
      'Destination URL': 'url',
      Tags: 'tags',
      Status: 'archived',
      Engagements: VISITS,
    },
  },
  {
    name: 'Bitly (API)',
    marks: ['link', 'long_url'],
    places: 'text',
    columns: {
      'custom_bitlinks.0': 'address',
      link: 'address',
      long_url: 'url',
      title: 'title',
      tags: 'tags',
      archived: 'archived',
      created_at: 'created_at',
      deeplinks: DEVICES,
      id: MADE,
      created_by: AUTHOR,
      client_id: IDS,
      references: MADE,
    },
  },
  {
    name: 'Rebrandly',
    marks: ['slashtag', 'destination'],
    places: 'text',
    columns: {
      slashtag: 'slug',
      'domain.fullName': 'domain',
      domain: 'domain',
      destination: 'url',
      title: 'title',
      description: 'description',
      tags: 'tags',
      createdAt: 'created_at',
      updatedAt: 'updated_at',
      id: IDS,
      shortUrl: MADE,
      clicks: VISITS,
      lastClickAt: LAST_VISIT,
      favourite: VIEW,
      forwardParameters: { told: 'passes queries on, which it did not', when: 'false' },
    },
  },
  {
    name: 'Trotto',
    marks: ['shortpath', 'destination_url'],
    places: '%s',
    columns: {
      shortpath: 'slug',
      destination_url: 'url',
      owner: 'owner',
      created: 'created_at',
      modified: 'updated_at',
      namespace: { left: 'all names are in one space here' },
      id: IDS,
      oid: IDS,
      type: VIEW,
      mine: VIEW,
      visits_count: VISITS,
    },
  },
  {
    name: 'GoLinks',
    marks: ['gid', 'name', 'url'],
    places: '{*}',
    columns: {
      name: 'slug',
      url: 'url',
      description: 'description',
      tags: 'tags',
      'user.email': 'owner',
      aliases: 'aliases',
      private: 'closed',
      unlisted: 'unlisted',
      created_at: 'created_at',
      updated_at: 'updated_at',
      geolinks: DEVICES,
      multilinks: { told: 'without its further addresses' },
      public: { left: 'who may visit is decided in front of this server' },
      variable_link: { left: 'seen by the {*} in its url' },
      gid: IDS,
      cid: IDS,
      pinned: VIEW,
      format: VIEW,
      hyphens: { left: 'names with other dashes lead here anyway' },
      redirect_hits: VISITS,
    },
  },
  {
    name: 'Shlink',
    marks: ['shortCode', 'longUrl'],
    places: 'text',
    columns: {
      shortCode: 'slug',
      domain: 'domain',
      longUrl: 'url',
      title: 'title',
      tags: 'tags',
      dateCreated: 'created_at',
      createdAt: 'created_at',
      'meta.validSince': 'begins_at',
      'meta.validUntil': 'expires_at',
      'meta.maxVisits': 'max_visits',
      'visitsSummary.total': 'visits',
      // Shlink before 4 may have a number alone.
      visitsCount: 'visits',
      visits: VISITS,
      hasRedirectRules: { told: 'without its redirect rules' },
      forwardQuery: { told: 'passes queries on, which it did not', when: 'false' },
      crawlable: { told: 'closed to search engines, which it was not' },
      shortUrl: MADE,
    },
  },
  {
    name: 'kutt',
    marks: ['address', 'target'],
    places: 'text',
    columns: {
      address: 'slug',
      domain: 'domain',
      domain_id: 'own domain',
      target: 'url',
      description: 'description',
      email: 'owner',
      password: 'password',
      banned: 'archived',
      expire_in: 'expires_at',
      created_at: 'created_at',
      updated_at: 'updated_at',
      id: IDS,
      uuid: IDS,
      user_id: IDS,
      link: MADE,
      relative_created_at: MADE,
      relative_expire_in: MADE,
      visit_count: VISITS,
    },
  },
]

/** The program that a row is from; undefined for an unknown one. */
export function sourceOf(row: Row): Source | undefined {
  return SOURCES.find(({ marks }) => marks.every((mark) => row.has(mark)))
}
