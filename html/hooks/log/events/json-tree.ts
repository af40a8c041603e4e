import { html, type Html } from '../../../../kernel/html.ts'
import type { JsonMember, JsonNode } from '../../../../services/hooks/log/events/json-nodes.ts'
import { logUrl } from '../../log-url.ts'

/** Objects and arrays down to here are open, unless they are long. */
const OPEN_DEPTH = 4
const OPEN_MEMBERS = 50

/**
 * JSON as a tree that folds without script. A value leads to the events of the provider that have
 * it, where the log can filter by it. hooks.js makes a name a button that copies its path.
 */
export function jsonTree(root: JsonNode, provider: string): Html {
  const content = root.members.length === 0 ? leaf(root, provider) : list(root, provider)
  return html`<div class="json" tabindex="0" role="group" aria-label="Payload">${content}</div>`
}

function list({ members }: JsonNode, provider: string): Html {
  return html`<ul>
    ${members.map((member) => item(member, provider))}
  </ul>`
}

function item({ key, node }: JsonMember, provider: string): Html {
  const name = html`<span class="key">${key}</span>`
  if (node.members.length === 0) return html`<li>${name}: ${leaf(node, provider)}</li> `
  const { length } = node.members
  const count = node.kind === 'array' ? `[${length}]` : `{${length}}`
  const isOpen = node.steps.length < OPEN_DEPTH && length <= OPEN_MEMBERS
  return html`<li>
    <details ${isOpen && 'open'}>
      <summary>${name} <span class="muted">${count}</span></summary>
      ${list(node, provider)}
    </details>
  </li>`
}

function leaf({ kind, source, filter }: JsonNode, provider: string): Html {
  if (filter === null) return html`<span class="${kind}">${source}</span>`
  return html`<a class="${kind}" href="${logUrl({ provider, json: filter })}">${source}</a>`
}
