// The popup: the links to the page that is open, and the form of a new one.

import { callApi, readSettings } from './gatehouse.js'

/** Links that the popup names. */
const MAX_SHOWN = 5
/** Characters of a name that is proposed, and of a title. */
const MAX_PROPOSED = 40
const MAX_TITLE = 200

const byId = (id) => document.getElementById(id)
const message = byId('message')
const form = byId('create')

byId('open-settings').addEventListener('click', () => chrome.runtime.openOptionsPage())
byId('another').addEventListener('click', () => showForm())

await begin()

async function begin() {
  const settings = await readSettings()
  if (settings === undefined) return say('Enter the address of your Gatehouse in the settings.')
  const [tab] = await chrome.tabs.query({ active: true, currentWindow: true })
  const { url = '', title = '' } = tab ?? {}
  if (!/^https?:/.test(url)) return say('Links lead to http:// and https:// addresses only.')
  try {
    const { short_keyword: keyword } = await callApi(settings, 'GET', '/config')
    fillForm(keyword, { url, title })
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      void create(settings, keyword, url)
    })
    showExisting(settings, keyword, await linksTo(settings, url))
  } catch (error) {
    say(error.message)
  }
}

/** The links to an address; undefined for a token that may create only. */
async function linksTo(settings, url) {
  try {
    const query = new URLSearchParams({ url, limit: MAX_SHOWN })
    const { links } = await callApi(settings, 'GET', `/links?${query}`)
    return links
  } catch (error) {
    if (error.status === 403) return undefined
    throw error
  }
}

function showExisting(settings, keyword, links) {
  if (links === undefined) {
    say('Your token may not look for links to this page.')
    showForm()
  } else if (links.length === 0) {
    say('No link leads to this page yet.')
    showForm()
  } else {
    say(`Already ${links.map(({ slug }) => `${keyword}/${slug}`).join(', ')}`)
    byId('existing').replaceChildren(...links.map((link) => linkItem(settings, keyword, link)))
    byId('another').hidden = false
  }
}

/** A link with its title, and a button that copies its address. */
function linkItem({ base }, keyword, { slug, title }) {
  const item = document.createElement('li')
  const name = document.createElement('a')
  name.href = `${base}/${slug}+`
  name.target = '_blank'
  name.textContent = `${keyword}/${slug}`
  const copy = document.createElement('button')
  copy.type = 'button'
  copy.textContent = 'Copy'
  copy.addEventListener('click', async () => {
    await navigator.clipboard.writeText(`${base}/${slug}`)
    copy.textContent = 'Copied'
  })
  item.append(name, copy, title)
  return item
}

function fillForm(keyword, { url, title }) {
  byId('keyword').textContent = `${keyword}/`
  byId('slug').value = proposedSlug(url, title)
  byId('title').value = title.slice(0, MAX_TITLE)
  byId('url').textContent = url
}

/** A name made of the last part of the page's path, of its title, or of its host; else empty. */
function proposedSlug(url, title) {
  const { hostname, pathname } = new URL(url)
  const part = pathname.split('/').findLast((text) => text !== '') ?? ''
  const slugs = [part.replace(/\.\w{1,5}$/, ''), title, hostname].map(toSlug)
  return slugs.find((slug) => slug.length > 1) ?? ''
}

function toSlug(text) {
  const plain = text.normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase()
  const dashed = plain.replaceAll(/[^a-z0-9]+/g, '-').slice(0, MAX_PROPOSED)
  return dashed.replaceAll(/^-|-$/g, '')
}

function showForm() {
  byId('another').hidden = true
  form.hidden = false
  byId('slug').select()
}

async function create(settings, keyword, url) {
  byId('problem').textContent = ''
  const link = { slug: byId('slug').value.trim().toLowerCase(), url, title: byId('title').value }
  try {
    const created = await callApi(settings, 'POST', '/links', link)
    form.hidden = true
    say(`Created ${keyword}/${created.slug}`)
    byId('existing').replaceChildren(linkItem(settings, keyword, created))
  } catch (error) {
    byId('problem').textContent = error.message
  }
}

function say(text) {
  message.textContent = text
}
