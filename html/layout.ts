import type { Fault } from '../kernel/fault.ts'
import { html, type Html, type Printable } from '../kernel/html.ts'
import type { Page, View } from '../kernel/http/view.ts'
import { capitalized, sentence } from './form.ts'

/** What the pages of one service have in common. */
export interface Site {
  service: string
  /** The services that run, with this one. */
  services: readonly ServiceLink[]
  /** Path of its first page. */
  home: string
  /** Path of the folder of style sheets and scripts, without a slash at its end. */
  assets: string
  tagline: string
  /** Path of the page that explains the service's API, when it has one. */
  apiDocs?: string
  /** Path of the page that says who changed what, for those who may open it. */
  audit?: string
  /** Path of the documentation, for those who may read it. */
  docs?: string
  /** Path of the palette, for those who may use it. */
  palette?: string
  navigation: readonly Entry[]
  /** Stands at the end of the navigation, such as who is signed in. */
  aside?: Html
  /** Further elements of the document's head. */
  head?: Html
}

/** A service and where its pages begin. */
export interface ServiceLink {
  name: string
  href: string
}

/** An entry of the navigation; the page of the same section is marked in it. */
export interface Entry {
  section: string
  href: string
  label: string
}

/** Entries that are named like their addresses; the first one is the home page. */
export function entriesOf(...sections: readonly string[]): readonly Entry[] {
  return sections.map((section, at) => {
    const href = at === 0 ? '/' : `/${section}`
    return { section, href, label: capitalized(section) }
  })
}

/** A document; `folder` is the path of its icon's folder, without a slash at its end. */
function htmlDocument(title: string, folder: string, head: Html, body: Html): Html {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title} · Gatehouse</title>
        <link rel="icon" href="${folder}/icon.svg" type="image/svg+xml" />
        ${head}
      </head>
      <body>
        ${body}
      </body>
    </html> `
}

/**
 * htmx adds no style sheet and copies no styles: the content security policy forbids both. It keeps
 * what a person has opened. On "back" it reloads the page, because it would fetch a fragment.
 */
const HTMX_CONFIG = JSON.stringify({
  includeIndicatorCSS: false,
  history: 'reload',
  defaultSettleDelay: 0,
  morphIgnore: ['data-htmx-powered', 'open', 'data-opened'],
})

/** The document around a page. */
export function layout(site: Site, page: Page): Html {
  const { assets, tagline, apiDocs, audit, docs } = site
  const head = html`<meta name="color-scheme" content="light dark" />
    <meta name="theme-color" content="#ffffff" media="(prefers-color-scheme: light)" />
    <meta name="theme-color" content="#1b2127" media="(prefers-color-scheme: dark)" />
    <meta name="htmx-config" content="${HTMX_CONFIG}" />
    <link rel="stylesheet" href="${assets}/app.css" />
    <link rel="stylesheet" href="${assets}/${site.service}.css" />
    ${site.head}
    <script src="${assets}/htmx.js" defer></script>
    <script src="${assets}/app.js" type="module"></script>
    <script src="${assets}/keys.js" type="module"></script>
    ${
      site.palette !== undefined &&
      html`<script src="${assets}/palette.js" type="module"></script>`
    }
    ${
      page.script !== undefined &&
      html`<script src="${assets}/${page.script}" type="module"></script>`
    }`
  const body = html`<a class="skip" href="#main">Skip to content</a>
    ${header(site, page)}
    <div class="messages">
      <p id="problem" class="problem" role="alert"></p>
      <p id="done" class="done" role="status">${page.done}</p>
    </div>
    <main id="main" tabindex="-1">${page.body}</main>
    <footer class="bottom">
      Gatehouse · ${tagline} · <a href="/healthz">health</a>
      ${docs !== undefined && html`· <a href="${docs}">documentation</a>`}
      ${apiDocs !== undefined && html`· <a href="${apiDocs}">API</a>`}
      ${audit !== undefined && html`· <a href="${audit}">audit</a>`}
    </footer>`
  return htmlDocument(page.title, assets, head, body)
}

/** A page of which htmx replaces the content; `above` and `below` stay. */
export function contentView(
  { above, below, ...page }: Omit<Page, 'body'> & { above: Html; below?: Html | undefined },
  content: Html,
): View {
  return {
    page: () => ({ ...page, body: html`${above} ${content} ${below}` }),
    fragment: () => content,
  }
}

/**
 * The header: the services, and the navigation of this one. On a narrow screen the navigation is a
 * popover behind a button, which needs no script.
 */
function header(site: Site, page: Page): Html {
  const { home, assets, service, services, palette, navigation, aside } = site
  const others = services.length > 1 ? services : []
  const tabs = others.map(({ name, href }) => {
    const current = name === service && html`aria-current="true"`
    const label = capitalized(name)
    return html`<a href="${name === service ? home : href}" ${current} data-label="${label}"
      >${label}</a
    >`
  })
  const keys = keysOf(navigation)
  const entries = navigation.map(({ section, href, label }, at) => {
    const current = section === page.section && html`aria-current="page"`
    return html`<a href="${href}" ${current} data-key="${keys[at]}" data-label="${label}"
      >${label}</a
    >`
  })
  return html`<header class="top">
    <a class="brand" href="${home}">
      <img src="${assets}/icon.svg" alt="" width="28" height="28" /><span>Gatehouse</span>
    </a>
    ${tabs.length > 0 && html`<nav class="services" aria-label="Services">${tabs}</nav>`}
    ${
      entries.length > 0 &&
      html`<button class="menu" type="button" popovertarget="navigation">Menu</button>
        <nav id="navigation" popover aria-label="Main">${entries}</nav>`
    }
    ${palette !== undefined && paletteLink(palette)} ${aside}
  </header>`
}

/** Opens the palette; without script, the page of the same search. */
function paletteLink(path: string): Html {
  const keys = 'Control+K Meta+K'
  return html`<a class="search" href="${path}" data-palette aria-keyshortcuts="${keys}">
    <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <circle cx="7" cy="7" r="4.5" />
      <path d="m10.5 10.5 4 4" />
    </svg>
    <span>Search</span> <kbd class="js-only">Ctrl K</kbd>
  </a>`
}

/**
 * The letter of each entry, which leads to it after `g`: the first one of its section that no entry
 * before it has.
 */
function keysOf(navigation: readonly Entry[]): readonly string[] {
  const taken = new Set<string>()
  for (const { section } of navigation) {
    taken.add([...section].find((letter) => !taken.has(letter)) ?? section)
  }
  return [...taken]
}

/** A refused or failed request, as its page shows it. */
export type ShownFault = Pick<Fault, 'status' | 'title' | 'message'>

/** The page of a refused or failed request: what happened, and `ways` on. */
export function errorPage({ status, title, message }: ShownFault, ways: Printable): Page {
  return {
    title: `${status} ${title}`,
    section: 'none',
    body: html`<section class="panel error">
      <p class="muted"><code>${status}</code></p>
      <h1>${title}</h1>
      <p>${sentence(message)}</p>
      <p>${ways}</p>
    </section>`,
  }
}

/**
 * The page of an API's explorer; `folder` has its files, and its script knows where the document
 * is. `home` is the first page of the service.
 */
export function explorerPage(title: string, folder: string, home: string): Html {
  const head = html`<meta name="color-scheme" content="light dark" />
    <link rel="stylesheet" href="${folder}/swagger-ui.css" />
    <link rel="stylesheet" href="${folder}/explorer.css" />
    <script src="${folder}/swagger-ui-bundle.js" defer></script>
    <script src="${folder}/explorer.js" defer></script>`
  const body = html`<header class="top">
      <a class="brand" href="${home}">
        <img src="${folder}/icon.svg" alt="" width="28" height="28" /><span>Gatehouse</span>
      </a>
      <a href="${home}">Back to the pages</a>
    </header>
    <main id="explorer">
      <noscript>
        <p>
          The explorer needs JavaScript. The description that it shows is at
          <a href="../openapi.yaml">openapi.yaml</a>.
        </p>
      </noscript>
    </main>`
  return htmlDocument(title, folder, head, body)
}
