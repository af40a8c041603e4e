import { html, type Html } from '../../kernel/html.ts'
import type { Page } from '../../kernel/http/view.ts'
import { copyBox, namedRows, section } from '../parts.ts'
import type { ShortLinks } from './names/links/links.ts'

/**
 * `/-/help`: how go links are used in this installation. The configuration is of assistants, with
 * TOKEN in the place of a token.
 */
export function helpPage({ keyword, shown, base }: ShortLinks, configuration: string): Page {
  const body = html`<h1>How to use go links</h1>
    <section>
      <p>
        A link has a short name, such as <code>docs</code>: <code>${base}/docs</code> leads to its
        address.
        ${
          shown === keyword &&
          html`So does <code>${keyword}/docs</code>, where the network knows
            <code>${keyword}</code> as a name of this host.`
        }
      </p>
    </section>
    ${inBrowser(keyword, base)} ${fromAnyPage(base)} ${placeholders(shown)} ${visits()}
    ${fromPrograms(base)} ${fromAssistants(base, configuration)}`
  return { title: 'Help', section: 'help', body }
}

function inBrowser(keyword: string, base: string): Html {
  const content = html`<p>
      Add the search of this site to your browser’s search engines, with the keyword
      <code>${keyword}</code>. Then <code>${keyword} docs</code> opens the link. Browsers find the
      search when they have seen a page of this site: Firefox offers it in the menu of the address
      bar, Chrome under Settings, Search engine, Site search. To add it by hand, use this address:
    </p>
    ${copyBox('search-address', 'search address', `${base}/-/go?q=%s`)}
    <p>
      A search looks at names, titles, descriptions, addresses, tags and owners. It understands
      <code>#tag</code>, <code>owner:ada</code> and <code>${keyword}/docs</code>. One or two
      characters find names that begin with them.
    </p>
    <p>
      For a name without a link, you see similar links. A path after the name is kept:
      <code>${keyword} docs/install</code>.
    </p>`
  return section('help-browser', 'From the browser’s address bar', content)
}

/** A bookmark that opens the form of a new link for the page that is open. */
function fromAnyPage(base: string): Html {
  const fields = [
    'url=${encodeURIComponent(location.href)}',
    'title=${encodeURIComponent(document.title)}',
  ]
  const opens = `javascript:void open(\`${base}/-/new?${fields.join('&')}\`)`
  const content = html`<p>
      Drag this to the bookmarks bar: <a href="${opens}" class="button">New go link</a>. On any
      page, the bookmark opens the form of a new link with the page’s address and title. The form
      says whether the address has a link already. To add the bookmark by hand, use this as its
      address:
    </p>
    ${copyBox('bookmark', 'address of the bookmark', opens)}`
  return section('help-bookmark', 'From any page', content)
}

const SITE = 'https://example.com'

function placeholders(shown: string): Html {
  const examples = [
    ['{1}/issues/{2}', '/repo/42', 'repo/issues/42'],
    ['search?q={*}', '/a/b', 'search?q=a/b'],
    ['tree/{1:main}', '', 'tree/main'],
    [`search?q={*:${SITE}/}`, '', ''],
    ['tasks?of={user}', '', 'tasks?of=ada%40example.com'],
    ['docs', '/install', 'docs/install'],
    ['docs', '?page=2', 'docs?page=2'],
  ] as const
  const content = html`<p>
      <code>{1}</code> to <code>{9}</code> in a link’s address stand for the segments of the path
      after its name, <code>{*}</code> for all that are left. Without a placeholder, the path is
      added at the end when the link allows it. A query is always passed on.
    </p>
    <p>
      Text after a colon is a default, for visits without that segment. A default that begins with
      <code>https://</code> or <code>http://</code> is the whole address that such visits lead to.
      In a default, <code>%7B</code> and <code>%7D</code> stand for braces.
    </p>
    <p>
      <code>{user}</code> stands for the visitor’s e-mail address. The site that the link leads to
      is told who visits, and so is everybody who sees the address. Visitors who are not signed in
      are refused, unless there is a default.
    </p>
    ${namedRows(
      'Examples of paths',
      ['The link’s address', 'What you open, and where it leads'],
      examples.map(([address, path, target]) => [
        html`<code>${SITE}/${address}</code>`,
        `${shown}/name${path} → ${SITE}/${target}`,
      ]),
    )}`
  return section('help-places', 'Paths and placeholders', content)
}

function visits(): Html {
  const ignored = html`Upper case, dashes, dots and <code>_</code>`
  const content = html`<p>
      Everybody who is signed in sees <strong>public</strong> links. Only their owners and the
      people they are shared with see <strong>private</strong> links, but everybody who knows the
      name may follow them. Only owners, people they are shared with, and admins may follow
      <strong>secure</strong> links.
    </p>
    <p>
      With a <code>+</code> after the name, such as <code>docs+</code>, you see where a link leads
      without following it, and may try what its placeholders become. ${ignored} do not matter,
      unless another link has exactly that name.
    </p>`
  return section('help-visits', 'Who finds and follows a link', content)
}

function fromPrograms(base: string): Html {
  const curl = `curl -H "Authorization: Bearer $TOKEN"`
  const list = `${curl} '${base}/api/v1/links'`
  const create =
    `${curl} -H 'Content-Type: application/json' \\\n` +
    `  -d '{"slug": "docs", "url": "https://example.com/docs", "tags": ["handbook"]}' \\\n` +
    `  '${base}/api/v1/links'`
  const content = html`<p>
      Create a token under <a href="/-/tokens">Tokens</a> and put it into <code>TOKEN</code>. List
      your links:
    </p>
    ${copyBox('curl-list', 'curl command that lists links', list)}
    <p>Create a link:</p>
    ${copyBox('curl-create', 'curl command that creates a link', create)}
    <p>You can try <a href="/api/docs/">the whole API</a> in the browser.</p>`
  return section('help-programs', 'From programs', content)
}

function fromAssistants(base: string, configuration: string): Html {
  const content = html`<p>
      An assistant that speaks MCP finds, resolves and creates links at
      <code>${base}/mcp/links</code>, with a token of <a href="/-/tokens">Tokens</a> as its bearer
      token. It sees what you may see. With the scope <em>Read</em> it creates nothing, with
      <em>Create</em> it only creates. Many assistants take this configuration:
    </p>
    ${copyBox('assistant-configuration', 'client configuration', configuration)}`
  return section('help-assistants', 'From assistants', content)
}
